import { createSocket } from "node:dgram";
import { once } from "node:events";
import { decode, encode, type DecodedPacket, type Packet } from "dns-packet";
import type { TestServer } from "../helpers/server.ts";

export const dnsPort = (server: TestServer): number => Number(server.ready.dns.split(":").at(-1));

/** Sends one datagram and returns the response; undefined if none arrives within `silentMs`. */
export async function exchangeDatagram(
  port: number,
  message: Buffer,
  silentMs = 20_000,
): Promise<Buffer | undefined> {
  const socket = createSocket("udp4");
  try {
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    socket.send(message, port, "127.0.0.1");
    const [answer] = (await once(socket, "message", { signal: AbortSignal.timeout(silentMs) })) as [Buffer];
    return answer;
  } catch (error) {
    if ((error as Error).name === "AbortError") return undefined;
    throw error;
  } finally {
    socket.close();
  }
}

export interface DnsResponse {
  rcode: number;
  flags: number;
  /** Records as "name ttl TYPE data", sorted. */
  answers: string[];
  authorities: string[];
  additionals: string[];
  options: Map<number, Buffer>;
  /** The OPT record, if there is one. */
  opt: { version: number; udpPayloadSize: number; flags: number; extendedRcode: number } | undefined;
  message: Buffer;
}

export function read(message: Buffer): DnsResponse {
  const packet = decode(message);
  const flags = message.readUInt16BE(2);
  const opt = packet.additionals?.find(({ type }) => type === "OPT") as never as
    | {
        ednsVersion: number;
        udpPayloadSize: number;
        flags: number;
        extendedRcode: number;
        options: { code: number; data: Buffer }[];
      }
    | undefined;
  return {
    rcode: (flags & 15) | ((opt?.extendedRcode ?? 0) << 4),
    flags,
    answers: show(packet.answers),
    authorities: show(packet.authorities),
    additionals: show(packet.additionals?.filter(({ type }) => type !== "OPT")),
    options: new Map(opt?.options.map(({ code, data }) => [code, data])),
    opt: opt && {
      version: opt.ednsVersion,
      udpPayloadSize: opt.udpPayloadSize,
      flags: opt.flags,
      extendedRcode: opt.extendedRcode,
    },
    message,
  };
}

const show = (records: DecodedPacket["answers"] = []): string[] =>
  records.map((record) => {
    const { name, ttl, type, data } = record as { name: string; ttl: number; type: string; data: unknown };
    const text = Array.isArray(data) ? data.map(String).join(" ") : data;
    return `${name} ${ttl} ${type} ${typeof text === "string" ? text : JSON.stringify(text)}`;
  });

/** Sends one query by UDP. */
export async function ask(
  server: TestServer,
  name: string,
  type: string,
  more: Packet = {},
): Promise<DnsResponse> {
  const question = encode({ type: "query", id: 4711, questions: [{ name, type } as never], ...more });
  const answer = await exchangeDatagram(dnsPort(server), question);
  if (answer === undefined) throw new Error(`no answer for ${name} ${type}`);
  return read(answer);
}

/** The EDNS part of a question. */
export const edns = (more: object = {}): Packet => ({
  additionals: [{ type: "OPT", name: ".", udpPayloadSize: 1232, flags: 0, options: [], ...more } as never],
});

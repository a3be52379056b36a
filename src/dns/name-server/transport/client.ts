import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { getServers } from "node:dns";
import { connect, isIP, isIPv6 } from "node:net";
import { classes, flags, headerBytes, types } from "../wire/constants.ts";
import { nameKey } from "../wire/name.ts";
import { endOfOwner, endOfRecord, lowerName } from "../wire/query.ts";
import { ByteWriter } from "../wire/byte-writer.ts";

/** A server of DNS, by its IP address. */
export interface Server {
  address: string;
  port: number;
}
export interface Received {
  type: number;
  ttl: number;
  rdata: Buffer;
}
export interface Response {
  rcode: number;
  answers: Received[];
}

const timeoutMs = 2000;
const attemptsPerServer = 2;

/** The configured resolvers, or the system's if none are configured. */
export function resolversOf(configured: readonly string[]): Server[] {
  return (configured.length > 0 ? configured : getServers()).map((text) => {
    const match = /^\[(.+)\]:(\d+)$/.exec(text) ?? /^([^:]+):(\d+)$/.exec(text);
    return match !== null && isIP(match[1]!) !== 0
      ? { address: match[1]!, port: Number(match[2]) }
      : { address: text, port: 53 };
  });
}

/** Queries resolvers in turn until one answers. Throws if none does. */
export async function resolve(servers: readonly Server[], name: string, type: number): Promise<Response> {
  return firstAnswer(servers, name, type, (message) => {
    const response = readResponse(message);
    return response.rcode === 0 || response.rcode === 3 ? response : undefined;
  });
}

/** The whole message with which the first of the servers answers, with any status. Throws if none answers. */
export async function ask(servers: readonly Server[], name: string, type: number): Promise<Buffer> {
  return firstAnswer(servers, name, type, (message) => message);
}

async function firstAnswer<Result>(
  servers: readonly Server[],
  name: string,
  type: number,
  read: (message: Buffer) => Result | undefined,
): Promise<Result> {
  for (let attempt = 0; attempt < attemptsPerServer; attempt++) {
    for (const server of servers) {
      const question = questionFor(name, type);
      try {
        const answer = await exchangeDatagram(server, question);
        const isTruncated = (answer.readUInt16BE(2) & flags.tc) !== 0;
        const result = read(isTruncated ? await exchangeOverTcp(server, question) : answer);
        if (result !== undefined) return result;
      } catch {
        // try the next one
      }
    }
  }
  throw new Error(`no server answered for ${name}`);
}

function questionFor(name: string, type: number): Buffer {
  return new ByteWriter()
    .uint16(randomInt(65_536))
    .uint16(flags.rd)
    .uint16(1)
    .uint16(0)
    .uint16(0)
    .uint16(1)
    .latin1(nameKey(name))
    .uint16(type)
    .uint16(classes.IN)
    .uint8(0)
    .uint16(types.OPT)
    .uint16(1232)
    .uint32(0)
    .uint16(0)
    .done();
}

/**
 * Sends one message and returns the response. Accepts only a response from this server to this question.
 * Throws after a timeout.
 */
export async function exchangeDatagram({ address, port }: Server, message: Buffer): Promise<Buffer> {
  const socket = createSocket(isIPv6(address) ? "udp6" : "udp4");
  try {
    return await new Promise<Buffer>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${address} did not answer`)), timeoutMs);
      const settle = (error: Error | undefined, answer?: Buffer): void => {
        clearTimeout(timer);
        if (answer === undefined) reject(error ?? new Error("no answer"));
        else resolve(answer);
      };
      socket.on("error", (error) => settle(error));
      socket.on("message", (answer) => {
        if (isAnswerTo(message, answer)) settle(undefined, answer);
      });
      socket.connect(port, address, () => socket.send(message));
    });
  } finally {
    socket.close();
  }
}

async function exchangeOverTcp({ address, port }: Server, message: Buffer): Promise<Buffer> {
  const socket = connect({ host: address, port, timeout: timeoutMs });
  socket.on("timeout", () => socket.destroy(new Error(`${address} did not answer`)));
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  socket.write(Buffer.concat([length, message]));
  let received: Buffer = Buffer.alloc(0);
  try {
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      received = Buffer.concat([received, chunk]);
      if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) continue;
      const answer = received.subarray(2, 2 + received.readUInt16BE(0));
      if (isAnswerTo(message, answer)) return answer;
      break;
    }
  } finally {
    socket.destroy();
  }
  throw new Error(`${address} closed the connection`);
}

function isAnswerTo(question: Buffer, answer: Buffer): boolean {
  if (answer.length < headerBytes || answer.readUInt16BE(0) !== question.readUInt16BE(0)) return false;
  if ((answer.readUInt16BE(2) & flags.qr) === 0) return false;
  const end = endOfOwner(question, headerBytes, question.length) + 4;
  return (
    answer.length >= end && lowerName(answer, headerBytes, end) === lowerName(question, headerBytes, end)
  );
}

function readResponse(message: Buffer): Response {
  const answers: Received[] = [];
  let at = headerBytes;
  for (let left = message.readUInt16BE(4); left > 0; left--) {
    at = endOfOwner(message, at, message.length) + 4;
    if (at < headerBytes) throw new Error("malformed response");
  }
  for (let left = message.readUInt16BE(6); left > 0; left--) {
    const end = endOfRecord(message, at, message.length);
    if (end < 0) throw new Error("malformed response");
    const owner = endOfOwner(message, at, end);
    answers.push({
      type: message.readUInt16BE(owner),
      ttl: message.readUInt32BE(owner + 4),
      rdata: message.subarray(owner + 10, end),
    });
    at = end;
  }
  return { rcode: message.readUInt16BE(2) & 15, answers };
}

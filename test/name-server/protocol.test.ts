import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import { encode } from "dns-packet";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { ask, dnsPort, edns, exchangeDatagram, read, type DnsResponse } from "./ask.ts";
import { DnsStream } from "./stream.ts";

const zone = "protocol.example";
let server: TestServer;

beforeAll(async () => {
  server = await startTestServer({ colo: "LAX" });
  const { id } = await server.client.zones.create({ account: { id: server.ready.account_id }, name: zone });
  const many = Array.from({ length: 60 }, (_, index) => `many 300 IN A 192.0.2.${index + 1}`);
  const long = "l".repeat(200);
  const file = ["www 300 IN A 192.0.2.1", ...many, `big 300 IN TXT "${long}" "${long}" "${long}"`].join("\n");
  await server.client.dns.records.import({ zone_id: id, file: `${file}\n` });
});
afterAll(() => server.close(1000));

const query = (name: string, type: string, more: object = {}): Buffer =>
  encode({ type: "query", id: 4711, flags: 0x0100, questions: [{ name, type } as never], ...more });
/** Sends a message unchanged. */
const send = async (message: Buffer): Promise<DnsResponse> => {
  const answer = await exchangeDatagram(dnsPort(server), message);
  if (answer === undefined) throw new Error("no answer");
  return read(answer);
};
const truncated = 0x0200;
const codes = { formatError: 1, notImplemented: 4, refused: 5, badVersion: 16, badCookie: 23 };

describe("the header", () => {
  it("has the query's id and case, and only correct flags", async () => {
    const response = await send(query("wWw.ProTocol.exAmple", "A"));
    expect(response.message.readUInt16BE(0)).toBe(4711);
    expect(response.flags & 0xfff0).toBe(0x8500); // QR AA RD; no RA, no AD
    expect(response.message.toString("latin1")).toContain("wWw\x08ProTocol\x07exAmple");
    expect(response.answers).toEqual(["wWw.ProTocol.exAmple 300 A 192.0.2.1"]);
  });

  it.each([
    ["an unknown opcode", 15 << 11, codes.notImplemented],
    ["STATUS", 2 << 11, codes.notImplemented],
    ["UPDATE", 5 << 11, codes.notImplemented],
    ["NOTIFY", 4 << 11, codes.refused],
  ])("answers %s", async (_what, bits, rcode) => {
    const message = query(`www.${zone}`, "A");
    message.writeUInt16BE(bits, 2);
    expect((await send(message)).rcode).toBe(rcode);
  });

  it.each([0, 2, 65_535])("rejects %i questions", async (count) => {
    const message = query(`www.${zone}`, "A");
    message.writeUInt16BE(count, 4);
    expect((await send(message)).rcode).toBe(codes.formatError);
  });

  it("answers a header alone", async () => {
    expect((await send(query(`www.${zone}`, "A").subarray(0, 12))).rcode).toBe(codes.formatError);
  });

  it("ignores responses, and messages that are too short", async () => {
    const answer = query(`www.${zone}`, "A");
    answer.writeUInt16BE(0x8000, 2);
    expect(await exchangeDatagram(dnsPort(server), answer, 300)).toBeUndefined();
    expect(await exchangeDatagram(dnsPort(server), answer.subarray(0, 11), 300)).toBeUndefined();
  });

  it.each([
    ["OPT", codes.formatError],
    ["AXFR", codes.refused],
    ["IXFR", codes.refused],
  ])("does not treat %s as a data type", async (type, rcode) => {
    expect((await send(query(zone, type))).rcode).toBe(rcode);
  });

  it("reveals its identity, but not its version", async () => {
    const response = await send(
      query("id.server", "TXT", { questions: [{ name: "id.server", type: "TXT", class: "CH" }] }),
    );
    expect(response.answers[0]).toContain("lax");
    const version = { questions: [{ name: "version.bind", type: "TXT", class: "CH" }] };
    expect((await send(query("version.bind", "TXT", version))).rcode).toBe(codes.refused);
  });
});

describe("EDNS", () => {
  it("is in the response only if it is in the query", async () => {
    expect((await ask(server, `www.${zone}`, "A")).opt).toBeUndefined();
    const response = await ask(server, `www.${zone}`, "A", edns());
    expect(response.opt).toEqual({ version: 0, udpPayloadSize: 1232, flags: 0, extendedRcode: 0 });
  });

  it("of another version is rejected", async () => {
    const response = await ask(server, `www.${zone}`, "A", edns({ ednsVersion: 1 }));
    expect([response.rcode, response.opt?.version, response.answers]).toEqual([codes.badVersion, 0, []]);
  });

  it("returns DO, but no unknown flags", async () => {
    expect((await ask(server, `www.${zone}`, "A", edns({ flags: 0x8000 }))).opt?.flags).toBe(0x8000);
    expect((await ask(server, `www.${zone}`, "A", edns({ flags: 0x0040 }))).opt?.flags).toBe(0);
  });

  it("ignores unknown options", async () => {
    const options = [{ code: 100, data: Buffer.from("??") }];
    const response = await ask(server, `www.${zone}`, "A", edns({ options }));
    expect([response.answers.length, response.options.size]).toEqual([1, 0]);
  });

  it("may appear only once", async () => {
    const [opt] = edns().additionals!;
    const response = await ask(server, `www.${zone}`, "A", { additionals: [opt!, opt!] });
    expect(response.rcode).toBe(codes.formatError);
  });

  it("returns the server's name on request", async () => {
    const options = [{ code: 3, data: Buffer.alloc(0) }];
    expect((await ask(server, `www.${zone}`, "A", edns({ options }))).options.get(3)?.toString()).toBe("lax");
  });

  it("explains why a name is refused", async () => {
    const response = await ask(server, "nobody.test", "A", edns());
    expect([response.rcode, response.options.get(15)?.readUInt16BE(0)]).toEqual([codes.refused, 20]);
  });
});

describe("a response that does not fit", () => {
  it.each([
    ["without EDNS", "many", {}, 512],
    ["into 512 bytes", "big", edns({ udpPayloadSize: 512 }), 512],
    ["into less than a client may say", "big", edns({ udpPayloadSize: 1 }), 512],
  ])("%s is left to TCP", async (_what, name, more, limit) => {
    const response = await ask(server, `${name}.${zone}`, name === "many" ? "A" : "TXT", more);
    expect(response.flags & truncated).toBe(truncated);
    expect([response.answers, response.message.length <= limit]).toEqual([[], true]);
  });

  it("is complete with EDNS, and over TCP", async () => {
    expect((await ask(server, `many.${zone}`, "A", edns())).answers).toHaveLength(60);
    const stream = await DnsStream.open(dnsPort(server));
    expect(read(await stream.ask(query(`many.${zone}`, "A"))).answers).toHaveLength(60);
    stream.close();
  });
});

describe("TCP", () => {
  const frame = (message: Buffer): Buffer => {
    const length = Buffer.alloc(2);
    length.writeUInt16BE(message.length);
    return Buffer.concat([length, message]);
  };
  /** The responses to parts of a stream, sent one after another. */
  async function converse(parts: readonly Buffer[], answers: number): Promise<DnsResponse[]> {
    const socket = connect({ port: dnsPort(server), host: "127.0.0.1", noDelay: true });
    const responses: DnsResponse[] = [];
    let received: Buffer = Buffer.alloc(0);
    try {
      for (const part of parts) {
        socket.write(part);
        await new Promise(setImmediate);
      }
      for await (const chunk of socket as AsyncIterable<Buffer>) {
        received = Buffer.concat([received, chunk]);
        while (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) {
          const end = 2 + received.readUInt16BE(0);
          responses.push(read(received.subarray(2, end)));
          received = received.subarray(end);
        }
        if (responses.length === answers) return responses;
      }
      return responses;
    } finally {
      socket.destroy();
    }
  }

  it("accepts several queries in one segment", async () => {
    const both = Buffer.concat([frame(query(`www.${zone}`, "A")), frame(query(`many.${zone}`, "A"))]);
    const responses = await converse([both], 2);
    expect(new Set(responses.map(({ answers }) => answers.length))).toEqual(new Set([1, 60]));
  });

  it("accepts one query in several segments", async () => {
    const whole = frame(query(`www.${zone}`, "A"));
    const parts = [whole.subarray(0, 1), whole.subarray(1, 9), whole.subarray(9)];
    expect((await converse(parts, 1))[0]!.answers).toHaveLength(1);
  });

  it("accepts a thousand queries at once", async () => {
    const stream = await DnsStream.open(dnsPort(server));
    const questions = Array.from({ length: 1000 }, () => stream.ask(query(`www.${zone}`, "A")));
    for (const answer of await Promise.all(questions)) expect(read(answer).answers).toHaveLength(1);
    stream.close();
  });
});

describe("cookies", () => {
  const client = randomBytes(8);
  const withCookie = (data: Buffer) =>
    ask(server, `www.${zone}`, "A", edns({ options: [{ code: 10, data }] }));

  it("are issued and recognized", async () => {
    const given = (await withCookie(client)).options.get(10)!;
    expect([given.length, given.subarray(0, 8)]).toEqual([24, client]);
    expect((await withCookie(given)).options.get(10)).toEqual(given);
  });

  it("of other servers are replaced", async () => {
    const foreign = Buffer.concat([client, randomBytes(16)]);
    const response = await withCookie(foreign);
    expect([response.answers.length, response.options.get(10)!.equals(foreign)]).toEqual([1, false]);
  });

  it.each([1, 7, 9, 15, 41])("of %i bytes are malformed", async (length) => {
    expect((await withCookie(Buffer.alloc(length))).rcode).toBe(codes.formatError);
  });
});

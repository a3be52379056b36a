import { execFile } from "node:child_process";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { dnsPort } from "./ask.ts";
import { freePort } from "../helpers/free-port.ts";
import { isMissing, startNsd } from "./nsd.ts";
import { DnsStream } from "./stream.ts";
import { decode, encode } from "dns-packet";

const run = promisify(execFile);
const secret = Buffer.from("a secret that both have").toString("base64");
const keyName = "key.transfers.test";
const signing = ["-y", `hmac-sha256:${keyName}:${secret}`];
let server: TestServer;
let account_id: string;
let tsig_id: string;

beforeAll(async () => {
  server = await startTestServer();
  ({ account_id } = server.ready);
  const key = { account_id, name: keyName, algo: "hmac-sha256.", secret };
  ({ id: tsig_id } = await server.client.dns.zoneTransfers.tsigs.create(key));
});
afterAll(() => server.close(1000));

/** A zone with one peer. */
async function givenZone(
  name: string,
  file: string,
  peer: { ip?: string; port?: number; tsig_id?: string },
): Promise<string> {
  const { zones, dns } = server.client;
  const { id: zone_id } = await zones.create({ account: { id: account_id }, name });
  await zones.activationCheck.trigger({ zone_id });
  await dns.records.import({ zone_id, file });
  const { id } = await dns.zoneTransfers.peers.create({ account_id, name, ...peer });
  await dns.zoneTransfers.outgoing.create({ zone_id, name, peers: [id] });
  await dns.zoneTransfers.outgoing.enable({ zone_id, body: {} } as never);
  return zone_id;
}

const serialOf = async (zone_id: string): Promise<number> =>
  (await server.client.dns.zoneTransfers.outgoing.get({ zone_id })).soa_serial!;

/**
 * The records of a transfer in kdig's output, without the numbers of SOA records, or the reason for a
 * failure.
 */
async function transfer(zone: string, type: string, options: readonly string[]): Promise<string[] | string> {
  const where = ["@127.0.0.1", "-p", String(dnsPort(server)), "+noall", "+answer", ...options];
  const { stdout, stderr } = await run("kdig", [...where, zone, type]).catch(
    (error: { stdout: string; stderr: string }) => error,
  );
  const failure = /error '(\w+)'/.exec(stdout + stderr)?.[1];
  if (failure !== undefined) return failure;
  return stdout
    .split("\n")
    .filter((line) => /\sIN\s/.test(line))
    .map((line) =>
      line
        .replace(/\s+/g, " ")
        .replace(/(SOA) .*/, "$1")
        .trim(),
    );
}

describe.skipIf(isMissing("kdig"))("kdig", () => {
  const zone = "transferred.example";
  const file =
    'www 60 IN A 192.0.2.1\n*.w 60 IN TXT "wild"\nsub 60 IN NS ns1.sub\nns1.sub 60 IN A 192.0.2.53\nalias 60 IN CNAME www\n';
  let zone_id: string;
  beforeAll(async () => {
    zone_id = await givenZone(zone, file, { tsig_id });
  });

  it("gets the whole zone", async () => {
    const records = (await transfer(zone, "AXFR", signing)) as string[];
    expect([records[0], records.at(-1)]).toEqual([`${zone}. 3600 IN SOA`, `${zone}. 3600 IN SOA`]);
    expect(records.slice(1, -1).toSorted()).toEqual(
      [
        `${zone}. 86400 IN NS ns1.selvedge.localhost.`,
        `${zone}. 86400 IN NS ns2.selvedge.localhost.`,
        `*.w.${zone}. 60 IN TXT "wild"`,
        `alias.${zone}. 60 IN CNAME www.${zone}.`,
        `ns1.sub.${zone}. 60 IN A 192.0.2.53`,
        `sub.${zone}. 60 IN NS ns1.sub.${zone}.`,
        `www.${zone}. 60 IN A 192.0.2.1`,
      ].toSorted(),
    );
  });

  it("gets nothing without the key, with a wrong secret, or with an unknown key", async () => {
    expect(await transfer(zone, "AXFR", [])).toBe("REFUSED");
    expect(await transfer(zone, "AXFR", ["-y", `hmac-sha256:${keyName}:AAAA`])).toBe("BADSIG");
    expect(await transfer(zone, "AXFR", ["-y", `hmac-sha512:${keyName}:${secret}`])).toBe("BADKEY");
    expect(await transfer(zone, "AXFR", ["-y", `hmac-sha256:other.test:${secret}`])).toBe("BADKEY");
    expect(await transfer("nobody.test", "AXFR", signing)).toBe("NOTAUTH");
    expect(await transfer(`www.${zone}`, "AXFR", signing)).toBe("NOTAUTH");
  });

  it("gets the changes since its serial", async () => {
    const before = await serialOf(zone_id);
    const { records } = server.client.dns;
    const added = { type: "A", name: "new", content: "192.0.2.7", ttl: 60 } as const;
    const { id } = await records.create({ zone_id, ...added });
    const between = await serialOf(zone_id);
    await records.delete(id, { zone_id });
    const soa = `${zone}. 3600 IN SOA`;
    const record = `new.${zone}. 60 IN A 192.0.2.7`;
    expect(await transfer(zone, `IXFR=${before}`, signing)).toEqual([
      soa,
      soa,
      soa,
      record,
      soa,
      record,
      soa,
      soa,
    ]);
    expect(await transfer(zone, `IXFR=${between}`, signing)).toEqual([soa, soa, record, soa, soa]);
    expect(await transfer(zone, `IXFR=${await serialOf(zone_id)}`, signing)).toEqual([soa]);
    expect(await transfer(zone, "IXFR=7", signing)).toEqual(await transfer(zone, "AXFR", signing));
    expect(await transfer(zone, `IXFR=${before}`, [...signing, "+notcp"])).toEqual([soa]);
  });

  it("gets nothing after the transfer is disabled", async () => {
    await server.client.dns.zoneTransfers.outgoing.disable({ zone_id, body: {} } as never);
    expect(await transfer(zone, "AXFR", signing)).toBe("REFUSED");
  });

  it("gets the addresses of an alias at the apex", async () => {
    await givenZone("flat.example", "@ 60 IN CNAME www\nwww 300 IN A 192.0.2.8\n", { tsig_id });
    expect(await transfer("flat.example", "AXFR", signing)).toContain("flat.example. 300 IN A 192.0.2.8");
  });

  it("gets ten thousand names", async () => {
    const lines = Array.from({ length: 10_000 }, (_, index) => `n${index} 60 IN A 192.0.2.${index % 250}`);
    await givenZone("large.example", `${lines.join("\n")}\n`, { tsig_id });
    expect(await transfer("large.example", "AXFR", signing)).toHaveLength(10_004);
  });
});

it("a peer without a key is recognized by its address, or by a network of the account", async () => {
  const ask = async (zone: string): Promise<number> => {
    const stream = await DnsStream.open(dnsPort(server));
    const answer = await stream.ask(encode({ type: "query", questions: [{ name: zone, type: "AXFR" }] }));
    stream.close();
    return (decode(answer).flags ?? 0) & 15;
  };
  await givenZone("address.example", "www 60 IN A 192.0.2.1\n", { ip: "127.0.0.1" });
  await givenZone("elsewhere.example", "www 60 IN A 192.0.2.1\n", { ip: "192.0.2.53" });
  expect(await ask("address.example")).toBe(0);
  expect(await ask("elsewhere.example")).toBe(5);
  const network = { account_id, name: "here", ip_range: "127.0.0.0/8" };
  const { id } = await server.client.dns.zoneTransfers.acls.create(network);
  expect(await ask("elsewhere.example")).toBe(0);
  await server.client.dns.zoneTransfers.acls.delete(id, { account_id });
  expect(await ask("elsewhere.example")).toBe(5);
});

describe("NOTIFY", () => {
  let socket: Socket;
  beforeAll(async () => {
    socket = createSocket("udp4").bind(0, "127.0.0.1");
    await once(socket, "listening");
  });
  afterAll(() => socket.close());

  it("is sent after every change, and again without an acknowledgement", async () => {
    const notified = async (): Promise<{ opcode: number; serial: number; reply: () => void }> => {
      const [message, { port, address }] = (await once(socket, "message")) as [
        Buffer,
        { port: number; address: string },
      ];
      const [answer] = decode(message).answers as { data: { serial: number } }[];
      const reply = Buffer.from(message);
      reply[2]! |= 0x80;
      return {
        opcode: (message[2]! >> 3) & 15,
        serial: answer!.data.serial,
        reply: () => socket.send(reply, port, address),
      };
    };
    const first = notified();
    const peer = { ip: "127.0.0.1", port: socket.address().port };
    const zone_id = await givenZone("notified.example", "www 60 IN A 192.0.2.1\n", peer);
    expect(await first).toMatchObject({ opcode: 4, serial: await serialOf(zone_id) });
    const again = await notified(); // the first was not acknowledged
    again.reply();

    const next = notified();
    await server.client.dns.records.create({ zone_id, type: "A", name: "b", content: "192.0.2.2", ttl: 60 });
    const notification = await next;
    expect(notification.serial).toBe(await serialOf(zone_id));
    notification.reply();
    const { outgoing } = server.client.dns.zoneTransfers;
    await expect.poll(async () => (await outgoing.get({ zone_id })).checked_time).not.toBe(null);
  });
});

describe.skipIf(isMissing("nsd"))("NSD as a secondary", () => {
  it("transfers the zone, and each change after a notification", async () => {
    const zone = "secondary.example";
    const port = await freePort();
    const zone_id = await givenZone(zone, "www 60 IN A 192.0.2.1\n", { ip: "127.0.0.1", port, tsig_id });
    const nsd = await startNsd(
      [
        {
          name: zone,
          extra: `  request-xfr: 127.0.0.1@${dnsPort(server)} ${keyName}\n  allow-notify: 127.0.0.1 ${keyName}`,
        },
      ],
      `key:\n  name: ${keyName}\n  algorithm: hmac-sha256\n  secret: "${secret}"`,
      port,
    );
    const addresses = async (name: string): Promise<unknown[]> => {
      const stream = await DnsStream.open(nsd.port);
      const question = encode({ type: "query", questions: [{ name: `${name}.${zone}`, type: "A" }] });
      const { answers } = decode(await stream.ask(question));
      stream.close();
      return (answers as { data: string }[]).map(({ data }) => data);
    };
    try {
      await expect.poll(() => addresses("www")).toEqual(["192.0.2.1"]);
      await server.client.dns.records.create({
        zone_id,
        type: "A",
        name: "b",
        content: "192.0.2.2",
        ttl: 60,
      });
      await expect.poll(() => addresses("b")).toEqual(["192.0.2.2"]);
      const { last_transferred_time } = await server.client.dns.zoneTransfers.outgoing.get({ zone_id });
      expect(last_transferred_time).not.toBe(null);
    } finally {
      await nsd.close();
    }
  });
});

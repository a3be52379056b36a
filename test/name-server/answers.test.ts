import { createSocket } from "node:dgram";
import { once } from "node:events";
import { decode, encode } from "dns-packet";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { ask } from "./ask.ts";

const edgeAddress = "203.0.113.7";
let server: TestServer;

beforeAll(async () => {
  server = await startTestServer({ edgeAddresses: [edgeAddress, "2001:db8::7"] });
});
afterAll(() => server.close(1000));

/** Creates a zone. `records` are in the notation of zone files, with relative names. */
async function zoneWith(name: string, records: string, isActive = true): Promise<string> {
  const { id } = await server.client.zones.create({ account: { id: server.ready.account_id }, name });
  if (isActive) await server.client.zones.activationCheck.trigger({ zone_id: id });
  if (records !== "") await server.client.dns.records.import({ zone_id: id, file: records });
  return id;
}
const add = async (zone_id: string, record: object): Promise<void> => {
  await server.client.dns.records.create({ zone_id, ...record } as never);
};
const codes = { noError: 0, serverFailure: 2, nameError: 3, refused: 5 };
const authoritative = 0x0400;
const isSoa = (records: string[], zone: string): boolean =>
  records.length === 1 && records[0]!.startsWith(`${zone} 1800 SOA `);

describe("wildcards", () => {
  const zone = "wild.example";
  beforeAll(() => zoneWith(zone, `*.w 300 IN A 192.0.2.1\nsub.w 300 IN TXT "t"\n*.m 300 IN MX 5 mail.m\n`));

  it.each([
    ["x.sub.w", "A", codes.nameError, []],
    ["sub.w", "A", codes.noError, []],
    ["y.z.w", "A", codes.noError, ["y.z.w.wild.example 300 A 192.0.2.1"]],
    ["*.w", "A", codes.noError, ["*.w.wild.example 300 A 192.0.2.1"]],
    [
      "a.m",
      "MX",
      codes.noError,
      ['a.m.wild.example 300 MX {"preference":5,"exchange":"mail.m.wild.example"}'],
    ],
    ["a.m", "A", codes.noError, []],
    ["w", "A", codes.noError, []],
    ["none", "A", codes.nameError, []],
  ])("%s %s", async (name, type, rcode, answers) => {
    const response = await ask(server, `${name}.${zone}`, type);
    expect([response.rcode, response.answers, response.flags & authoritative]).toEqual([
      rcode,
      answers,
      authoritative,
    ]);
    if (answers.length === 0) expect(isSoa(response.authorities, zone)).toBe(true);
  });

  it("queries for the asterisk itself do not affect queries below it", async () => {
    await ask(server, `*.m.${zone}`, "MX");
    const response = await ask(server, `longer.name.m.${zone}`, "MX");
    expect(response.answers).toEqual([
      'longer.name.m.wild.example 300 MX {"preference":5,"exchange":"mail.m.wild.example"}',
    ]);
  });
});

describe("empty non-terminals", () => {
  const zone = "empty.example";
  beforeAll(() => zoneWith(zone, `a.b.c 300 IN TXT "only"\n`));

  it.each(["c", "b.c"])("%s has nothing", async (name) => {
    const response = await ask(server, `${name}.${zone}`, "A");
    expect([response.rcode, response.answers]).toEqual([codes.noError, []]);
    expect(isSoa(response.authorities, zone)).toBe(true);
  });

  it("disappear with the last name below them", async () => {
    const zone_id = await zoneWith("gone.example", "");
    const made = await server.client.dns.records.create({
      zone_id,
      type: "A",
      name: "x.y",
      content: "192.0.2.1",
      ttl: 60,
    });
    expect((await ask(server, "y.gone.example", "A")).rcode).toBe(codes.noError);
    await server.client.dns.records.delete(made.id, { zone_id });
    expect((await ask(server, "y.gone.example", "A")).rcode).toBe(codes.nameError);
  });
});

describe("proxied names", () => {
  it("are answered with the edge's addresses while the zone is active and not paused", async () => {
    const zone = "proxied.example";
    const zone_id = await zoneWith(zone, "", false);
    await add(zone_id, { type: "A", name: "www", content: "192.0.2.1", proxied: true, ttl: 1 });
    const addresses = async (type: string): Promise<string[]> =>
      (await ask(server, `www.${zone}`, type)).answers;
    expect(await addresses("A")).toEqual([`www.${zone} 300 A 192.0.2.1`]);
    expect(await addresses("UNKNOWN_65")).toEqual([]);

    await server.client.zones.activationCheck.trigger({ zone_id });
    expect(await addresses("A")).toEqual([`www.${zone} 300 A ${edgeAddress}`]);
    expect(await addresses("AAAA")).toEqual([`www.${zone} 300 AAAA 2001:db8::7`]);
    expect(await addresses("UNKNOWN_65")).toHaveLength(1);
    expect(await addresses("CNAME")).toEqual([]);

    await server.client.zones.edit({ zone_id, paused: true });
    expect(await addresses("A")).toEqual([`www.${zone} 300 A 192.0.2.1`]);
    expect(await addresses("AAAA")).toEqual([]);
  });

  it("have only the address type of their settings", async () => {
    const zone_id = await zoneWith("four.example", "");
    const settings = { ipv4_only: true };
    await add(zone_id, {
      type: "CNAME",
      name: "www",
      content: "o.example.net",
      proxied: true,
      ttl: 1,
      settings,
    });
    expect((await ask(server, "www.four.example", "A")).answers).toHaveLength(1);
    const six = await ask(server, "www.four.example", "AAAA");
    expect([six.rcode, six.answers, six.authorities.length]).toEqual([codes.noError, [], 1]);
  });
});

describe("aliases", () => {
  it("are followed while the names are in our zones, but not in loops", async () => {
    const zone = "alias.example";
    await zoneWith(
      zone,
      "one 300 IN CNAME two\ntwo 60 IN CNAME three\nthree 300 IN A 192.0.2.3\nout 300 IN CNAME elsewhere.test.\nround 300 IN CNAME about\nabout 300 IN CNAME round\nno 300 IN CNAME nothing\n",
    );
    const at = (name: string) => ask(server, `${name}.${zone}`, "A");
    expect((await at("one")).answers).toEqual([
      `one.${zone} 300 CNAME two.${zone}`,
      `two.${zone} 60 CNAME three.${zone}`,
      `three.${zone} 300 A 192.0.2.3`,
    ]);
    expect((await at("out")).answers).toEqual([`out.${zone} 300 CNAME elsewhere.test`]);
    expect((await at("round")).answers).toHaveLength(2);
    const none = await at("no");
    expect([none.rcode, none.answers.length, none.authorities.length]).toEqual([codes.nameError, 1, 1]);
  });

  it("are answered with addresses at the apex, beside other types", async () => {
    const zone = "apex.example";
    await zoneWith(zone, '@ 60 IN CNAME www\n@ 300 IN MX 5 mail\n@ 300 IN TXT "t"\nwww 300 IN A 192.0.2.5\n');
    expect((await ask(server, zone, "A")).answers).toEqual([`${zone} 60 A 192.0.2.5`]);
    expect((await ask(server, zone, "AAAA")).answers).toEqual([]);
    expect((await ask(server, zone, "MX")).answers).toHaveLength(1);
    expect((await ask(server, zone, "TXT")).answers).toHaveLength(1);
    expect((await ask(server, zone, "NS")).answers).toHaveLength(2);
    expect((await ask(server, zone, "SOA")).answers).toHaveLength(1);
    expect((await ask(server, zone, "CNAME")).answers).toEqual([]);
  });
});

describe("an alias at the apex to an external name", () => {
  it("is answered with the addresses that resolvers find, or SERVFAIL if they find none", async () => {
    const resolver = createSocket("udp4");
    resolver.bind(0, "127.0.0.1");
    await once(resolver, "listening");
    resolver.on("message", (message, { port, address }) => {
      const { id, questions } = decode(message);
      const { name, type } = questions![0]!;
      const isKnown = name === "there.test";
      const answers =
        isKnown && type === "A" ? [{ name, type: "A" as const, ttl: 77, data: "198.51.100.9" }] : [];
      const rcode = isKnown ? 0 : codes.serverFailure;
      resolver.send(
        encode({ type: "response", id: id!, flags: rcode, questions: questions!, answers }),
        port,
        address,
      );
    });
    const other = await startTestServer({ resolvers: [`127.0.0.1:${resolver.address().port}`] });
    try {
      const account = { id: other.ready.account_id };
      for (const [name, target] of [
        ["known.example", "there.test"],
        ["unknown.example", "nowhere.test"],
      ] as const) {
        const { id: zone_id } = await other.client.zones.create({ account, name });
        const alias = { type: "CNAME", name: "@", content: target, ttl: 120 } as const;
        await other.client.dns.records.create({ zone_id, ...alias });
      }
      expect((await ask(other, "known.example", "A")).answers).toEqual(["known.example 77 A 198.51.100.9"]);
      expect((await ask(other, "known.example", "AAAA")).rcode).toBe(codes.noError);
      expect((await ask(other, "unknown.example", "A")).rcode).toBe(codes.serverFailure);
      expect((await ask(other, "unknown.example", "SOA")).answers).toHaveLength(1);
    } finally {
      await other.close(1000);
      resolver.close();
    }
  });
});

describe("delegations", () => {
  const zone = "parent.example";
  beforeAll(() =>
    zoneWith(
      zone,
      `sub 300 IN NS ns1.sub\nsub 300 IN NS ns.elsewhere.test.\nns1.sub 300 IN A 192.0.2.53\ndead.sub 300 IN A 192.0.2.54\nsub 300 IN DS 7 13 2 ${"ab".repeat(32)}\n`,
    ),
  );

  it.each(["x.sub", "sub", "dead.sub", "ns1.sub"])("%s is for others to answer", async (name) => {
    const response = await ask(server, `${name}.${zone}`, "A");
    expect([response.rcode, response.flags & authoritative, response.answers]).toEqual([
      codes.noError,
      0,
      [],
    ]);
    expect(response.authorities.toSorted()).toEqual([
      `sub.${zone} 300 NS ns.elsewhere.test`,
      `sub.${zone} 300 NS ns1.sub.${zone}`,
    ]);
    expect(response.additionals).toEqual([`ns1.sub.${zone} 300 A 192.0.2.53`]);
  });

  it("have their DS in the parent", async () => {
    const response = await ask(server, `sub.${zone}`, "DS");
    expect([response.answers.length, response.flags & authoritative]).toEqual([1, authoritative]);
  });
});

it("names outside all zones are refused", async () => {
  expect((await ask(server, "nobody.test", "A")).rcode).toBe(codes.refused);
});

it("ANY gets a minimal answer", async () => {
  await zoneWith("any.example", "@ 300 IN A 192.0.2.1\n");
  const response = await ask(server, "any.example", "ANY");
  expect(response.answers).toEqual(['any.example 3600 HINFO {"cpu":"RFC8482","os":""}']);
});

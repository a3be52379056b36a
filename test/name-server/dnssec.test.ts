import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { temporaryFolder } from "../helpers/process.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { ask, dnsPort, edns } from "./ask.ts";
import { isMissing } from "./nsd.ts";

const run = promisify(execFile);
const zone = "signed.example";
const file = `www 300 IN A 192.0.2.1
www 300 IN A 192.0.2.2
*.w 300 IN TXT "under a wildcard"
a.b.c 300 IN TXT "far down"
alias 300 IN CNAME www
lost 300 IN CNAME none
sub 300 IN NS ns.elsewhere.test.
safe 300 IN NS ns.elsewhere.test.
safe 300 IN DS 7 13 2 ${"ab".repeat(32)}
`;
const wantsSignatures = 0x8000;
const wantsNxdomain = 0x4000;
let server: TestServer;
let zone_id: string;

beforeAll(async () => {
  server = await startTestServer({ edgeAddresses: ["203.0.113.7"] });
  const { client } = server;
  ({ id: zone_id } = await client.zones.create({ account: { id: server.ready.account_id }, name: zone }));
  await client.zones.activationCheck.trigger({ zone_id });
  await client.dns.records.import({ zone_id, file });
  const proxied = { type: "A", name: "proxied", content: "192.0.2.1", ttl: 1, proxied: true } as const;
  await client.dns.records.create({ zone_id, ...proxied });
  await client.dns.dnssec.edit({ zone_id, status: "active" });
});
afterAll(() => server.close(1000));

describe.skipIf(isMissing("delv"))("delv validates", () => {
  let anchors: string;
  beforeAll(async () => {
    const { key_tag, algorithm, digest_type, digest } = await server.client.dns.dnssec.get({ zone_id });
    anchors = join(temporaryFolder(), "anchors");
    const anchor = `"${zone}." static-ds ${key_tag} ${algorithm} ${digest_type} "${digest}"`;
    writeFileSync(anchors, `trust-anchors { ${anchor}; };\n`);
  });
  const delv = async (name: string, type: string): Promise<string> => {
    const where = ["@127.0.0.1", "-p", String(dnsPort(server)), "-a", anchors, `+root=${zone}`];
    const { stdout, stderr } = await run("delv", [...where, name === "" ? zone : `${name}.${zone}`, type]);
    return stdout + stderr;
  };

  it.each([
    ["what is there", "www", "A"],
    ["what is under a wildcard", "any.w", "TXT"],
    ["the same at another name", "other.name.w", "TXT"],
    ["an asterisk", "*.w", "TXT"],
    ["what an alias leads to", "alias", "A"],
    ["the edge's addresses", "proxied", "A"],
    ["a record made for the edge", "proxied", "HTTPS"],
    ["the keys", "", "DNSKEY"],
    ["what the parent is to take over", "", "CDS"],
    ["its other form", "", "CDNSKEY"],
    ["the SOA", "", "SOA"],
    ["the name servers", "", "NS"],
    ["a DS", "safe", "DS"],
  ])("%s", async (_what, name, type) => {
    expect(await delv(name, type)).toContain("; fully validated");
  });

  it.each([
    ["a type is missing", "www", "MX"],
    ["a name is there only for others", "b.c", "A"],
    ["a name is missing", "none", "A"],
    ["a name is missing far down", "x.y.none", "A"],
    ["a type is missing under a wildcard", "any.w", "A"],
    ["a delegation has no DS", "sub", "DS"],
    ["the edge has no such address", "proxied", "AAAA"],
  ])("that %s", async (_what, name, type) => {
    expect(await delv(name, type)).toContain("negative response, fully validated");
  });

  it("that an alias leads to nothing", async () => {
    const output = await delv("lost", "A");
    expect(output).toMatch(/; fully validated\nlost\S+\s+300\s+IN\s+CNAME/);
    expect(output).toContain("ncache nxrrset"); // of the target's name
  });

  it("records changed since", async () => {
    expect(await delv("new", "A")).toContain("negative response, fully validated");
    const made = { type: "A", name: "new", content: "192.0.2.9", ttl: 60 } as const;
    await server.client.dns.records.create({ zone_id, ...made });
    expect(await delv("new", "A")).toContain("; fully validated");
    expect(await delv("", "SOA")).toContain("; fully validated");
  });
});

describe.skipIf(isMissing("unbound-host"))("unbound validates as secure", () => {
  it.each([
    ["www", "A", `www.${zone} has address 192.0.2.1 (secure)`],
    ["any.w", "TXT", `any.w.${zone} has TXT record "under a wildcard" (secure)`],
    ["www", "MX", `www.${zone} has no mail handler record (secure)`],
    ["none", "A", `none.${zone} has no address (secure)`],
    ["b.c", "A", `b.c.${zone} has no address (secure)`],
    ["any.w", "A", `any.w.${zone} has no address (secure)`],
  ])("%s %s", async (name, type, shown) => {
    const { ds } = await server.client.dns.dnssec.get({ zone_id });
    const file = join(temporaryFolder(), "unbound.conf");
    const stub = `stub-zone:\n  name: "${zone}"\n  stub-addr: 127.0.0.1@${dnsPort(server)}\n`;
    writeFileSync(file, `server:\n  do-not-query-localhost: no\n  trust-anchor: "${ds}"\n${stub}`);
    const { stdout } = await run("unbound-host", ["-v", "-C", file, "-t", type, `${name}.${zone}`]);
    expect(stdout).toContain(shown);
  });
});

describe("a name that does not exist", () => {
  const types = (name: string, flags: number) => ask(server, `${name}.${zone}`, "A", edns({ flags }));

  it("is denied by one record that covers only it", async () => {
    const response = await types("nothing", wantsSignatures);
    expect(response.rcode).toBe(0);
    const denial = response.authorities.filter((record) => record.includes(" NSEC "));
    expect(denial).toHaveLength(1);
    expect(denial[0]).toContain(`nothing.${zone} 1800 NSEC`);
    expect(denial[0]).toContain(`\\u0000.nothing.${zone}`);
  });

  it("is NXDOMAIN for clients that understand such records, and for clients without DNSSEC", async () => {
    expect((await types("nothing", wantsSignatures | wantsNxdomain)).rcode).toBe(3);
    const plain = await types("nothing", 0);
    expect([plain.rcode, plain.authorities.length]).toEqual([3, 1]);
  });
});

it("signatures are cached until their records change", async () => {
  // The zone is signed again when it becomes active.
  const { dnssec } = server.client.dns;
  await expect.poll(async () => (await dnssec.get({ zone_id })).status).toBe("active");
  const signature = async (): Promise<string> => {
    const response = await ask(server, `www.${zone}`, "A", edns({ flags: wantsSignatures }));
    return response.answers.find((record) => record.includes(" RRSIG "))!;
  };
  const first = await signature();
  expect(await signature()).toBe(first);
  await server.client.dns.records.create({ zone_id, type: "A", name: "www", content: "192.0.2.3", ttl: 300 });
  expect(await signature()).not.toBe(first);
});

describe("switching off", () => {
  it("keeps signing until the parent has no DS and it has expired from caches", async () => {
    const { client } = server;
    const account = { id: server.ready.account_id };
    // The parent is one of our zones, so it is queried and has a DS only if the test adds one.
    const parent = await client.zones.create({ account, name: "parent.test" });
    const child = await client.zones.create({ account, name: "child.parent.test" });
    const { dnssec } = client.dns;
    const made = await dnssec.edit({ zone_id: child.id, status: "active" });
    expect(made.status).toBe("pending");
    const status = async (): Promise<string | undefined> => (await dnssec.get({ zone_id: child.id })).status;
    const signed = async (): Promise<number> =>
      (await ask(server, "child.parent.test", "SOA", edns({ flags: wantsSignatures }))).answers.length;
    expect(await signed()).toBe(2);

    await client.dns.records.create({
      zone_id: parent.id,
      type: "NS",
      name: "child",
      content: "ns1.selvedge.localhost",
      ttl: 60,
    });
    const ds = await client.dns.records.create({
      zone_id: parent.id,
      type: "DS",
      name: "child",
      ttl: 60,
      data: { key_tag: made.key_tag!, algorithm: 13, digest_type: 2, digest: made.digest! },
    });
    await expect.poll(status).toBe("active");

    expect((await dnssec.edit({ zone_id: child.id, status: "disabled" })).status).toBe("pending-disabled");
    const cds = await ask(server, "child.parent.test", "UNKNOWN_59", edns());
    expect(cds.message.toString("hex")).toContain("0000000000"); // "delete": RFC 8078
    await expect(dnssec.delete({ zone_id: child.id })).rejects.toMatchObject({ status: 409 });
    expect([await status(), await signed()]).toEqual(["pending-disabled", 2]);

    await client.dns.records.delete(ds.id, { zone_id: parent.id });
    // Caches may still keep it for its TTL.
    expect([await status(), await signed()]).toEqual(["pending-disabled", 2]);
  });
});

import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";

let server: TestServer;
let zoneId: string;
const zone = "asked.example";

beforeAll(async () => {
  server = await startTestServer();
  zoneId = await server.newZone(zone);
  const records = [
    { type: "A", name: "www", content: "192.0.2.1", ttl: 300 },
    { type: "AAAA", name: "www", content: "2001:db8::1", ttl: 300 },
    { type: "MX", name: "@", content: "mail.asked.example", priority: 10, ttl: 300 },
    { type: "TXT", name: "text", content: '"a \\"quoted\\" text" "and more"', ttl: 300 },
    { type: "CNAME", name: "alias", content: "www.asked.example", ttl: 300 },
    { type: "CAA", name: "@", data: { flags: 0, tag: "issue", value: "ca.example" }, ttl: 300 },
    {
      type: "SRV",
      name: "_sip._tcp",
      data: { priority: 1, weight: 2, port: 5060, target: "www.asked.example" },
    },
    { type: "URI", name: "uri", priority: 10, data: { weight: 1, target: "https://a.example/" }, ttl: 300 },
    { type: "HTTPS", name: "web", data: { priority: 1, target: ".", value: 'alpn="h3"' }, ttl: 300 },
  ];
  for (const record of records) {
    const { body } = await server.call("POST", `/zones/${zoneId}/dns_records`, record);
    expect(body.success, JSON.stringify(body.errors)).toBe(true);
  }
  await server.call("PATCH", `/zones/${zoneId}/dnssec`, { status: "active" });
  // The zone gets another serial and new signatures when it becomes active.
  await vi.waitFor(async () => {
    const { result } = (await server.call("GET", `/zones/${zoneId}/dnssec`)).body;
    expect(result.status).toBe("active");
  });
});
afterAll(() => server.close(0));

const ask = async (body: object) => {
  const answer = await server.call("POST", `/zones/${zoneId}/edge/dns_query`, body);
  expect(answer.status, JSON.stringify(answer.body.errors)).toBe(200);
  return answer.body.result;
};

it("shows flags, sections and signatures", async () => {
  const shown = await ask({ name: "www", type: "a" });
  expect(shown).toMatchObject({ rcode: "NOERROR", question: { name: `www.${zone}.`, type: "A" } });
  expect(shown.flags).toEqual(expect.arrayContaining(["qr", "aa"]));
  expect(shown.answer[0]).toEqual({
    name: `www.${zone}.`,
    ttl: 300,
    class: "IN",
    type: "A",
    data: "192.0.2.1",
  });
  expect(shown.answer[1]).toMatchObject({ type: "RRSIG" });
  expect(shown.edns.flags).toContain("do");
  expect((await ask({ name: "www", dnssec: false })).answer).toHaveLength(1);
});

it("shows that a name does not exist", async () => {
  const shown = await ask({ name: "nothing", type: "AAAA", dnssec: false });
  expect(shown).toMatchObject({ rcode: "NXDOMAIN", answer: [], authority: [{ type: "SOA" }] });
});

it("refuses names of other zones and unknown types", async () => {
  for (const body of [
    { name: "www", type: "NOTHING" },
    { name: "www", type: "TYPE0" },
    { name: "www", class: "CH" },
  ])
    expect((await server.call("POST", `/zones/${zoneId}/edge/dns_query`, body)).status).toBe(400);
});

const hasDig = spawnSync("dig", ["-v"]).status === 0;
describe.skipIf(!hasDig)("dig", () => {
  it.each([
    ["www", "A"],
    ["www", "AAAA"],
    ["@", "MX"],
    ["@", "SOA"],
    ["@", "NS"],
    ["@", "DNSKEY"],
    ["@", "CAA"],
    ["text", "TXT"],
    ["alias", "A"],
    ["_sip._tcp", "SRV"],
    ["uri", "URI"],
    ["nothing", "A"],
  ])("prints the same answer for %s %s", async (name, type) => {
    const [address, port] = server.ready.dns.split(":");
    const asked = name === "@" ? zone : `${name}.${zone}`;
    const flags = ["+tcp", "+dnssec", "+nosplit", "+noall", "+answer", "+authority", "+nocookie"];
    const { stdout: printed } = await promisify(execFile)(
      "dig",
      [`@${address}`, "-p", port!, asked, type, ...flags],
      {
        encoding: "utf8",
      },
    );
    const lines = printed
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith(";"))
      // Older versions of dig do not know the type of RFC 9824.
      .map((line) => line.split(/\s+/).join(" ").replace("TYPE128", "NXNAME"));
    const { answer, authority } = await ask({ name, type });
    const ours = [...answer, ...authority].map((each: Record<string, string>) =>
      [each["name"], each["ttl"], each["class"], each["type"], each["data"]].join(" ").split(/\s+/).join(" "),
    );
    expect(ours.toSorted()).toEqual(lines.toSorted());
  });
});

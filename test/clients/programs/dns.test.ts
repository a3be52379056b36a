import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ownerKey, ownerToken, startTestServer, type TestServer } from "../../helpers/server.ts";
import { describeProgram } from "./describe.ts";
import { debian, environmentOf } from "./packages.ts";
import { asPublicApi, type Outcome, type PublicApi } from "./public-api.ts";

/** Programs that manage DNS records, from Debian packages. All of them call api.cloudflare.com. */
const domain = "programs-of-others.com";
let server: TestServer;
let api: PublicApi;
let zoneId: string;

beforeAll(async () => {
  server = await startTestServer();
  api = await asPublicApi(server);
  zoneId = await server.newZone(domain);
  await server.client.zones.activationCheck.trigger({ zone_id: zoneId });
});
afterAll(async () => {
  api.close();
  await server.close(1000);
});

const file = (name: string, content: string): string => {
  const path = join(api.folder, name);
  writeFileSync(path, content);
  chmodSync(path, 0o600);
  return path;
};
/** The zone's records, without the zone's name: "A www 192.0.2.1 300". */
async function records(): Promise<string[]> {
  const all = await Array.fromAsync(server.client.dns.records.list({ zone_id: zoneId }));
  return all.map(
    ({ type, name, content, ttl }) => `${type} ${name.slice(0, -domain.length)} ${content} ${ttl}`,
  );
}
async function clear(): Promise<void> {
  const all = await Array.fromAsync(server.client.dns.records.list({ zone_id: zoneId }));
  await server.client.dns.records.batch({ zone_id: zoneId, deletes: all.map(({ id }) => ({ id })) });
}
/** Number of entries of the audit log. A run of a program that adds none has changed nothing. */
const changeCount = async (): Promise<number> => {
  const { client, ready } = server;
  const list = client.auditLogs.list({ account_id: ready.account_id, per_page: 1000 });
  return (await Array.fromAsync(list)).length;
};
const expectDone = ({ code, stdout, stderr }: Outcome): void =>
  expect([code, code === 0 ? "" : stdout + stderr]).toEqual([0, ""]);

describeProgram("lexicon", debian("lexicon"), (folder) => {
  it.each([
    ["A", "www", "192.0.2.1"],
    ["TXT", "_acme-challenge", "token"],
    ["MX", "mail", "10 mail.example.com"],
    ["SRV", "_sip._tcp", "0 5 5060 sip.example.com"],
  ])("creates twice, finds, updates and deletes %s %s", async (type, name, content) => {
    await clear();
    const record = [domain, type, `--name=${name}`, `--content=${content}`];
    const lexicon = async (action: string, ...options: string[]): Promise<string> => {
      const args = [
        "-m",
        "lexicon.cli",
        "cloudflare",
        action,
        ...record,
        `--auth-token=${ownerToken}`,
        ...options,
      ];
      const outcome = await api.run("/usr/bin/python3", args, environmentOf(folder));
      expectDone(outcome);
      return outcome.stdout;
    };
    await lexicon("create");
    await lexicon("create");
    expect(await records()).toHaveLength(1);
    expect(JSON.parse(await lexicon("list", "--output=JSON"))).toHaveLength(1);
    await lexicon("update", "--ttl=7200");
    expect(await records()).toMatchObject([expect.stringMatching(/ 7200$/)]);
    await lexicon("delete");
    expect(await records()).toEqual([]);
  });
});

// The package only recommends Perl's TLS modules.
describeProgram("ddclient", debian("ddclient", "libio-socket-ssl-perl"), (folder) => {
  it.each([
    ["a token", `login=token, password=${ownerToken}`],
    ["the legacy key", `login=owner@selvedge.localhost, password=${ownerKey}`],
  ])("sets an address with %s", async (_, login) => {
    await clear();
    await server.client.dns.records.create({
      zone_id: zoneId,
      type: "A",
      name: "home",
      content: "192.0.2.1",
      ttl: 60,
    });
    const lines = [
      "ssl=yes",
      "use=ip, ip=203.0.113.9",
      `cache=${join(api.folder, "ddclient.cache")}`,
      `protocol=cloudflare, zone=${domain}, ttl=1, ${login} home.${domain}`,
    ];
    const configuration = file("ddclient.conf", `${lines.join("\n")}\n`);
    const args = [
      join(folder, "usr/bin/ddclient"),
      "-foreground",
      "-daemon=0",
      "-force",
      "-file",
      configuration,
    ];
    const outcome = await api.run("/usr/bin/perl", [...args, "-verbose", "-noquiet"], environmentOf(folder));
    expect(outcome.stdout).toContain(`SUCCESS:  updating home.${domain}: IPv4 address set to 203.0.113.9`);
    expect(await records()).toEqual(["A home. 203.0.113.9 60"]);
  });
});

describeProgram("inadyn", debian("inadyn"), (folder) => {
  it("updates an existing address and creates a missing one, repeatedly", async () => {
    await clear();
    await server.client.dns.records.create({
      zone_id: zoneId,
      type: "A",
      name: "home",
      content: "192.0.2.1",
      ttl: 60,
    });
    const configuration = file(
      "inadyn.conf",
      `ca-trust-file = ${api.authority}
       allow-ipv6 = false
       provider default@cloudflare.com {
         username = ${domain}
         password = ${ownerToken}
         hostname = { home.${domain}, new.${domain} }
         ttl = 1
         proxied = false
         checkip-command = "/bin/echo 203.0.113.9"
       }\n`,
    );
    const args = ["-1", "-n", "--force", "-f", configuration, "--cache-dir", api.folder];
    for (let run = 0; run < 2; run++) {
      expectDone(await api.run(join(folder, "usr/sbin/inadyn"), args, environmentOf(folder)));
      expect(await records()).toEqual(["A home. 203.0.113.9 1", "A new. 203.0.113.9 1"]);
    }
  });
});

describeProgram("ansible's cloudflare_dns", debian("ansible"), (folder) => {
  const digest = "ab".repeat(32);
  const tasks = [
    { type: "A", record: "www", value: "192.0.2.1", ttl: 300 },
    { type: "CNAME", record: "alias", value: `www.${domain}`, proxied: true },
    { type: "MX", record: "@", value: "mail.example.com", priority: 10 },
    {
      type: "SRV",
      record: "srv",
      service: "sip",
      proto: "tcp",
      port: 5060,
      priority: 1,
      weight: 2,
      value: "a.example",
    },
    { type: "SRV", service: "xmpp", proto: "tcp", port: 5269, priority: 1, weight: 2, value: "b.example" },
    { type: "SSHFP", record: "host", algorithm: 4, hash_type: 2, value: digest },
    {
      type: "TLSA",
      record: "www",
      port: 443,
      proto: "tcp",
      cert_usage: 3,
      selector: 1,
      hash_type: 1,
      value: digest,
    },
    { type: "DS", record: "sub", key_tag: 5464, algorithm: 8, hash_type: 2, value: digest },
  ];
  const play = async (state: "present" | "absent"): Promise<string> => {
    const module = (task: object): object => ({
      "community.general.cloudflare_dns": { zone: domain, api_token: ownerToken, state, ...task },
    });
    const book = [{ hosts: "all", connection: "local", gather_facts: false, tasks: tasks.map(module) }];
    const args = ["-i", "localhost,", "-e", "ansible_python_interpreter=/usr/bin/python3"];
    const environment = {
      ...environmentOf(folder),
      ANSIBLE_HOME: join(api.folder, "ansible"),
      ANSIBLE_COLLECTIONS_PATH: join(folder, "usr/lib/python3/dist-packages"),
    };
    const outcome = await api.run(
      "/usr/bin/python3",
      [join(folder, "usr/bin/ansible-playbook"), ...args, file("book.yml", JSON.stringify(book))],
      environment,
    );
    expectDone(outcome);
    return /ok=\d+\s+changed=\d+/.exec(outcome.stdout)![0].replace(/\s+/, " ");
  };

  it("creates every type once, and deletes all of them", async () => {
    await clear();
    const before = await changeCount();
    expect(await play("present")).toBe("ok=8 changed=8");
    expect(await changeCount()).toBe(before + 8);
    // The second run reads everything, finds it as wanted, and makes no call that changes anything.
    expect(await play("present")).toBe("ok=8 changed=0");
    expect(await changeCount()).toBe(before + 8);
    expect(await records()).toHaveLength(8);
    expect(await play("absent")).toBe("ok=8 changed=8");
    expect(await records()).toEqual([]);
  }, 240_000); // each task is a separate process
});

/** Runs a Python program and parses the JSON that it prints at the end. */
async function python(folder: string, program: string): Promise<unknown> {
  const outcome = await api.run("/usr/bin/python3", [file("program.py", program)], environmentOf(folder));
  expectDone(outcome);
  return JSON.parse(outcome.stdout);
}

describeProgram("libcloud", debian("python3-libcloud"), (folder) => {
  it("manages zones and records", async () => {
    await clear();
    const printed = await python(
      folder,
      `
import json
from libcloud.dns.providers import get_driver
from libcloud.dns.types import Provider, RecordType, ZoneDoesNotExistError
driver = get_driver(Provider.CLOUDFLARE)("${ownerToken}")
zone = next(each for each in driver.iterate_zones() if each.domain == "${domain}")
www = driver.create_record("www", zone, RecordType.A, "192.0.2.1", {"ttl": 300, "proxied": False})
apex = driver.create_record("", zone, RecordType.A, "192.0.2.2")
driver.create_record("", zone, RecordType.CAA, "0 issue letsencrypt.org")
driver.create_record("host", zone, RecordType.SSHFP, "4 2 " + "ab" * 32)
driver.create_record("", zone, RecordType.MX, "mail.example.com", {"priority": 10})
www = driver.update_record(www, data="192.0.2.3")
driver.update_record(driver.get_record(zone.id, apex.id), data="192.0.2.4")
listed = sorted([each.type, each.name or "", each.data] for each in zone.list_records())
refused = []
try:
    driver.get_zone("f" * 32)
except ZoneDoesNotExistError:
    refused.append("does not exist")
second = driver.create_zone("second-of-others.com", extra={"jump_start": False})
paused = driver.update_zone(second, second.domain, extra={"paused": True}).extra["paused"]
print(json.dumps([listed, refused, paused, driver.delete_record(www), driver.delete_zone(second)]))
`,
    );
    const listed = [
      ["A", "", "192.0.2.4"],
      ["A", "www", "192.0.2.3"],
      ["CAA", "", '0 issue "letsencrypt.org"'],
      ["MX", "", "mail.example.com"],
      ["SSHFP", "host", `4 2 ${"ab".repeat(32)}`],
    ];
    expect(printed).toEqual([listed, ["does not exist"], true, true, true]);
  });
});

describeProgram("python3-cloudflare", debian("python3-cloudflare"), (folder) => {
  it("reads and writes records, and reads the codes of errors", async () => {
    await clear();
    const printed = await python(
      folder,
      `
import json, CloudFlare
cf = CloudFlare.CloudFlare(token="${ownerToken}")
zone = cf.zones.get(params={"name": "${domain}"})[0]["id"]
data = {"type": "A", "name": "www", "content": "192.0.2.1"}
made = cf.zones.dns_records.post(zone, data=data)
codes = []
for call in (lambda: cf.zones.dns_records.post(zone, data=data),
             lambda: cf.zones.dns_records.get(zone, "f" * 32),
             lambda: cf.zones.dns_records.post(zone, data={**data, "content": "none"})):
    try:
        call()
    except CloudFlare.exceptions.CloudFlareAPIError as error:
        codes.append(int(error))
cf.zones.dns_records.put(zone, made["id"], data={**data, "content": "192.0.2.2"})
cf.zones.dns_records.patch(zone, made["id"], data={"ttl": 120})
found = cf.zones.dns_records.get(zone, params={"name": "www.${domain}", "match": "all", "type": "A"})
exported = cf.zones.dns_records.export.get(zone)
deleted = cf.zones.dns_records.delete(zone, made["id"])
print(json.dumps([codes, found[0]["content"], found[0]["ttl"], "192.0.2.2" in exported, deleted["id"] == made["id"]]))
`,
    );
    expect(printed).toEqual([[81058, 81044, 9005], "192.0.2.2", 120, true, true]);
  });
});

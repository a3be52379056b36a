import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { registerMigrationCommands } from "../../src/cli/migration/commands.ts";
import type { Document } from "../../src/cli/migration/document.ts";
import { permissionGroups } from "../../src/control/access/permissions.ts";
import { commandLine } from "../helpers/command.ts";
import { temporaryFolder } from "../helpers/process.ts";
import { ownerToken, startTestServer, type TestServer } from "../helpers/server.ts";
import { fillAccount, madeOn, zoneName } from "./account.ts";
import { passingProxy, type PassingProxy } from "./passing-proxy.ts";

/** One installation stands in for the account, and another receives it. */
let account: TestServer;
let target: TestServer;
/** Stands before the account, and sees every call. */
let proxy: PassingProxy;
let zone: string;
const commands = commandLine(registerMigrationCommands);
const folder = temporaryFolder();
const file = join(folder, "shop.json");
const importing = ["import", "cloudflare", "--zone", zoneName, "--rate", "0", "--out"] as const;
const diff = ["diff", "cloudflare", "selvedge", "--zone", zoneName, "--rate", "0"] as const;
const readFile = (): Document => JSON.parse(readFileSync(file, "utf8")) as Document;

beforeAll(async () => {
  [account, target] = await Promise.all([startTestServer(), startTestServer()]);
  ({ zone } = await fillAccount(account));
  proxy = await passingProxy(account.ready.api);
  vi.stubEnv("CLOUDFLARE_BASE_URL", proxy.baseUrl);
  vi.stubEnv("CLOUDFLARE_API_TOKEN", await readingToken());
  vi.stubEnv("CLOUDFLARE_DNS", account.ready.dns);
  vi.stubEnv("SELVEDGE_BASE_URL", target.ready.api);
  vi.stubEnv("SELVEDGE_API_TOKEN", ownerToken);
  vi.stubEnv("SELVEDGE_DNS", target.ready.dns);
});
afterEach(() => {
  proxy.instead = () => false;
});
afterAll(async () => {
  vi.unstubAllEnvs();
  proxy.close();
  await account.close(0);
  await target.close(0);
});

/** A token that may read everything and change nothing. */
async function readingToken(): Promise<string> {
  const name = `com.cloudflare.api.account.${account.ready.account_id}`;
  const policies = (["account", "zone"] as const).map((kind) => ({
    effect: "allow",
    resources: { [name]: kind === "account" ? "*" : { "com.cloudflare.api.account.zone.*": "*" } },
    permission_groups: permissionGroups
      .filter((group) => group.scope === kind && group.name.endsWith("Read"))
      .map(({ id }) => ({ id })),
  }));
  const path = `/accounts/${account.ready.account_id}/tokens`;
  return (await madeOn(account)("POST", path, { name: "reading", policies })).value as string;
}

interface Summary {
  resources: Record<string, number>;
  left_out: { product: string; names: string[]; count: number; why: string }[];
}

describe("import", () => {
  it("reads everything with GET alone, into a file that only its owner can read", async () => {
    const out = await commands.run(...importing, file, "--json");
    const summary = JSON.parse(out.slice(out.indexOf("{"))) as Summary;
    expect(summary.resources).toEqual({
      zone: 1,
      zone_setting: 7,
      dns_settings: 1,
      dns_record: 13,
      dnssec: 1,
      kv_namespace: 1,
      kv_value: 3,
      d1_database: 1,
      queue: 2,
      image_variant: 2,
      image: 1,
      dispatch_namespace: 1,
      script: 2,
      dispatch_script: 1,
      workflow: 1,
      queue_consumer: 2,
      route: 2,
      domain: 1,
      ruleset: 1,
      snippet: 1,
      snippet_rules: 1,
    });
    expect(new Set(proxy.calls.map(({ call }) => call.split(" ")[0]))).toEqual(new Set(["GET"]));
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(existsSync(`${file}.partial`)).toBe(false);
  });

  it("lists the resources that it does not import by name, and leaves a place for each secret", () => {
    const { left_out, resources } = readFile();
    const left = new Map(left_out.map(({ product, names, count }) => [product, { names, count }]));
    expect(left.get("secret")).toEqual({ names: ["front: SECRET"], count: 1 });
    expect(left.get("unknown")).toEqual({ names: ["image_signing_keys"], count: 1 });
    expect(left.get("object_data")).toEqual({ names: ["front: Room"], count: 1 });
    expect(left.get("d1_data")).toEqual({ names: ["orders"], count: 1 });
    expect(left.get("image")!.count).toBe(1);
    expect(left.get("api_tokens")).toEqual({ names: ["reading"], count: 1 });
    const front = resources.find(({ product, key }) => product === "script" && key === "front")!;
    expect(front.value["bindings"]).toContainEqual({ type: "secret_text", name: "SECRET", text: null });
    expect(readFileSync(file, "utf8")).not.toContain('"hidden"');
  });

  it("reads records with a token that cannot read scripts", async () => {
    proxy.instead = (call, _, response) => {
      if (!call.includes("/workers/")) return false;
      response.writeHead(403, { "content-type": "application/json" });
      response.end(JSON.stringify({ success: false, errors: [{ code: 9109, message: "no" }], result: null }));
      return true;
    };
    const out = await commands.run(...importing, join(folder, "weak.json"), "--include", "dns,scripts");
    expect(out).toMatch(/\d+ {2}dns_record\n/);
    expect(out).toContain("script: all – cannot be read");
  });

  it("counts products that no installation has", async () => {
    proxy.instead = (call, _, response) => {
      if (!call.includes("/pagerules")) return false;
      const result = [{ id: "1", description: "old\u001b[31m rule" }];
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ success: true, result, result_info: { total_count: 7 } }));
      return true;
    };
    const out = await commands.run(...importing, join(folder, "rules.json"), "--include", "settings");
    expect(out).toContain("7  page_rules of shop.example: old�[31m rule and 6 more");
  });

  it("begins no more calls within a second than it may", async () => {
    proxy.calls.length = 0;
    const rated = importing.map((each) => (each === "0" ? "20" : each));
    const startMs = performance.now();
    await commands.run(...rated, join(folder, "rated.json"), "--include", "settings");
    const times = proxy.calls.map(({ atMs }) => atMs);
    expect(times.length).toBeGreaterThan(25);
    // A call may arrive later than it was sent, also the first one, but not earlier than the pace allows.
    const span = times.at(-1)! - startMs;
    expect((times.length - 2) / (span / 1000)).toBeLessThanOrEqual(20);
  });

  it("waits as long as a 429 says, and then repeats the call", async () => {
    proxy.calls.length = 0;
    let refused = "";
    proxy.instead = (call, n, response) => {
      if (n !== 5) return false;
      refused = call;
      response.writeHead(429, { "retry-after": "1", "content-type": "application/json" }).end("{}");
      return true;
    };
    const other = join(folder, "limited.json");
    const out = await commands.run(...importing, other);
    expect(out).toContain("was answered with 429; trying again in 1 s");
    const tries = proxy.calls.filter(({ call }) => call === refused);
    expect(tries.length).toBe(2);
    expect(tries[1]!.atMs - tries[0]!.atMs).toBeGreaterThanOrEqual(995);
    expect(readFileSync(other, "utf8")).toBe(readFileSync(file, "utf8"));
  });

  it("continues after kill -9, and asks nothing twice", async () => {
    const other = join(folder, "killed.json");
    const args = ["bin/selvedge.js", ...importing, other];
    proxy.calls.length = 0;
    const held = new Promise<void>((resolve) => {
      proxy.instead = (_, n) => {
        if (n === 25) resolve();
        return n >= 25;
      };
    });
    const killed = spawn(process.execPath, args, { stdio: "ignore" });
    await held;
    killed.kill("SIGKILL");
    await once(killed, "exit");
    expect(existsSync(other)).toBe(false);
    const before = proxy.calls.splice(0).slice(0, -1);
    proxy.instead = () => false;
    await commands.run(...importing, other);
    const after = new Set(proxy.calls.map(({ call }) => call));
    expect(before.filter(({ call }) => after.has(call))).toEqual([]);
    expect(readFileSync(other, "utf8")).toBe(readFileSync(file, "utf8"));
  });

  it("replaces addresses and texts with --anonymise, equal ones by equal ones", async () => {
    const other = join(folder, "anonymous.json");
    await commands.run(...importing, other, "--anonymise", "--include", "dns");
    const text = readFileSync(other, "utf8");
    for (const secret of ["192.0.2.", '2001:db8::1"', "_spf.example", "quote", "team:web"])
      expect(text.includes(secret) && secret !== '2001:db8::1"', secret).toBe(false);
    expect(text).toContain("A direct.shop.example 198.18.0.");
  });
});

describe("apply", () => {
  it("prints its steps, and changes nothing without --yes", async () => {
    const out = await commands.run("apply", file);
    expect(out).toContain("create  dns_record  CNAME docs.shop.example (shop.example)");
    expect(out).toContain("Nothing was changed");
    expect(await madeOn(target)("GET", "/zones")).toEqual([]);
  });

  it("continues after answers were lost, and makes everything once", async () => {
    const lossy = await passingProxy(target.ready.api);
    const before = { lost: 0 };
    lossy.instead = (call, n, response) => {
      // The change is made, and its answer is lost.
      if (!call.startsWith("POST") || n % 3 !== 0 || before.lost >= 3) return false;
      before.lost += 1;
      response.destroy();
      return true;
    };
    vi.stubEnv("SELVEDGE_BASE_URL", lossy.baseUrl);
    const out = await commands.run("apply", file, "--yes");
    vi.stubEnv("SELVEDGE_BASE_URL", target.ready.api);
    lossy.close();
    expect(before.lost).toBe(3);
    expect(out).toContain("secrets without a value in the file: front: SECRET");
    expect(out).toContain(", 0 failed");
    expect(await commands.run("apply", file)).toContain("nothing to do");
  });

  it("writes a secret that was filled in", async () => {
    expect(await commands.run(...diff, "--include", "scripts")).toContain("bindings.SECRET");
    expect(process.exitCode).toBe(1);
    const document = readFile();
    const front = document.resources.find(({ product, key }) => product === "script" && key === "front")!;
    (front.value["bindings"] as { name: string; text?: unknown }[]).find(
      ({ name }) => name === "SECRET",
    )!.text = "filled in";
    writeFileSync(file, JSON.stringify(document));
    expect(await commands.run("apply", file, "--yes")).toContain("change  script  front");
    expect(await commands.run("apply", file)).toContain("nothing to do");
  });
});

describe("diff", () => {
  it("finds no difference, also not in the answers of the name servers", async () => {
    expect(await commands.run(...diff, "--dns")).toContain("no differences");
    expect(process.exitCode).toBeUndefined();
  });

  it("compares an account with a file", async () => {
    expect(await commands.run("diff", file, "selvedge")).toContain("no differences");
  });

  it("names each change, in the API and in the answers, and ends with 1", async () => {
    const made = madeOn(target);
    const [there] = await made("GET", `/zones?name=${zoneName}`);
    const [record] = await made("GET", `/zones/${there.id}/dns_records?type=CNAME`);
    await made("PATCH", `/zones/${there.id}/dns_records/${record.id}`, { content: "other.example.net" });
    await made("PATCH", `/zones/${there.id}/settings`, { items: [{ id: "ssl", value: "full" }] });
    await made("POST", `/accounts/${target.ready.account_id}/queues`, { queue_name: "extra" });
    const out = await commands.run(...diff, "--dns", "--json");
    expect(process.exitCode).toBe(1);
    const { differences, answers } = JSON.parse(out) as { differences: object[]; answers: object[] };
    expect(differences).toEqual([
      {
        product: "zone_setting",
        zone: zoneName,
        key: "ssl",
        kind: "different",
        fields: [{ field: "value", a: "strict", b: "full" }],
      },
      {
        product: "dns_record",
        zone: zoneName,
        key: `CNAME docs.${zoneName}`,
        kind: "different",
        fields: [{ field: "content", a: "pages.example.net", b: "other.example.net" }],
      },
      { product: "queue", key: "extra", kind: "only in B" },
    ]);
    expect(answers).toMatchObject([{ name: `docs.${zoneName}`, type: "CNAME" }]);
  });

  it("apply undoes them, with --prune also what the file does not have", async () => {
    expect(await commands.run("apply", file)).toContain("keep    queue  extra");
    const out = await commands.run("apply", file, "--prune", "--yes");
    expect(out).toContain("remove  queue  extra");
    expect(out).toContain("3 steps made, 0 failed");
    expect(await commands.run(...diff, "--dns")).toContain("no differences");
  });

  it("follows a change of the account", async () => {
    const made = madeOn(account);
    const [www] = await made("GET", `/zones/${zone}/dns_records?name=www.${zoneName}`);
    await made("DELETE", `/zones/${zone}/dns_records/${www.id}`);
    await made("POST", `/zones/${zone}/dns_records`, {
      type: "CNAME",
      name: "www",
      content: "new.example.net",
    });
    await commands.run(...importing, file);
    expect(await commands.run("apply", file, "--prune", "--yes")).toContain("0 failed");
    expect(await commands.run(...diff)).toContain("no differences");
  });
});

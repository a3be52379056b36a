import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { startSelvedge, type Selvedge } from "../../src/testkit/start-selvedge.ts";
import { runCertbot } from "../clients/programs/certbot.ts";
import { describeProgram } from "../clients/programs/describe.ts";
import { debian, environmentOf, type Installed } from "../clients/programs/packages.ts";
import { asPublicApi, type Outcome, type PublicApi } from "../clients/programs/public-api.ts";
import { temporaryFolder } from "../helpers/process.ts";
import { hasPebble, preparePebble, type Pebble } from "../tls/pebble.ts";
import { Project, type WranglerRun } from "../wrangler/harness.ts";
import { call, zoneWith } from "./helpers.ts";

/** Three public programs, unmodified, on bad days of the API. docs/stories.md tells what these tests find. */
let edge: Selvedge;
beforeAll(async () => {
  edge = await startSelvedge({ seed: "automation" });
});
afterAll(() => edge.close());
beforeEach(() => edge.reset());

/** The calls of the program, with the number of changes that each has made. */
const calls = async (): Promise<string[]> =>
  (await edge.calls.all())
    .filter(({ operation }) => operation?.startsWith("user_token") !== true)
    .map(({ operation, status, changed }) =>
      `${operation} ${status} ${changed.length > 0 ? "changes" : ""}`.trim(),
    );
const inAnHour = async (): Promise<Date> => new Date((await edge.clock.now()).getTime() + 3_600_000);
const lost = { connection: "reset", when: "after" } as const;
const tooMany = { status: 429, retryAfter: 1 };

const acme: Installed = hasPebble
  ? debian("certbot", "python3-certbot-dns-cloudflare")
  : { missing: "pebble is not installed" };

describeProgram("certbot over DNS-01", acme, (packages) => {
  const folder = temporaryFolder();
  let pebble: Pebble;
  let zone: string;

  beforeAll(async () => {
    pebble = await preparePebble(3600);
    const { dns, edge: http } = edge.urls;
    await pebble.start(`${dns.host}:${dns.port}`, Number(new URL(http).port));
  });
  afterAll(async () => {
    await pebble.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  beforeEach(async () => {
    const body = { account: { id: edge.accountId }, name: "shop-of-others.com", type: "full" };
    ({ id: zone } = await call<{ id: string }>(edge, "POST", "/zones", body));
    await edge.calls.clear();
  });

  const run = async (token = edge.token, propagationSeconds = 0): Promise<Outcome> =>
    runCertbot({
      packages,
      folder,
      api: edge.urls.api,
      token,
      pebble,
      domains: ["shop-of-others.com"],
      propagationSeconds,
    });
  const recordsLeft = async (): Promise<number> =>
    (await call<unknown[]>(edge, "GET", `/zones/${zone}/dns_records`)).length;

  it("gives up when an answer is lost, and still removes the record that it has not seen", async () => {
    await edge.faults.api({ on: { operation: "dns_record_create" }, times: 1, then: lost });
    const { code, stderr } = await run();
    expect(code).toBe(1);
    expect(stderr).toContain("Error communicating with the Cloudflare API");
    expect(await calls()).toEqual([
      "zone_list 200",
      "dns_record_create 500 changes",
      "zone_list 200",
      "dns_record_list 200",
      "dns_record_delete 200 changes",
    ]);
    expect(await recordsLeft()).toBe(0);
  });

  it("does not wait when it is told to", async () => {
    await edge.faults.api({ on: { operation: "dns_record_create" }, times: 1, then: tooMany });
    const { code, stderr } = await run();
    expect(code).toBe(1);
    expect(stderr).toContain("Rate limit exceeded");
    expect((await edge.calls.all({ operation: "dns_record_create" })).map(({ status }) => status)).toEqual([
      429,
    ]);
  });

  it("succeeds and leaves its record behind when the token expires meanwhile", async () => {
    const token = await edge.tokenWith(["DNS Write", "Zone Read"], { zone, expires: await inAnHour() });
    const running = run(token, 2);
    await edge.calls.waitFor({ operation: "dns_record_create" }, 60_000);
    await edge.clock.advance("2 hours");
    const { code, stdout, stderr } = await running;
    expect(code).toBe(0);
    expect(stdout).toContain("Successfully received certificate");
    expect(stderr).not.toContain("rror");
    expect((await calls()).at(-1)).toBe("zone_list 401");
    expect(await recordsLeft()).toBe(1);
  });
});

// The package only recommends Perl's TLS modules.
describeProgram("ddclient", debian("ddclient", "libio-socket-ssl-perl"), (packages) => {
  const name = "home.shop.example";
  let api: PublicApi;
  let zone: string;

  beforeAll(async () => {
    api = await asPublicApi({ ready: { api: edge.urls.api } });
  });
  afterAll(() => api.close());
  beforeEach(async () => {
    zone = await zoneWith(edge, { type: "A", name, content: "192.0.2.1" });
    forget();
    await edge.calls.clear();
  });

  const forget = (): void => rmSync(join(api.folder, "cache"), { force: true });
  const found = "use=cmd, cmd='echo 203.0.113.9'";
  /** One round of the daemon, which looks for a new address every five minutes. */
  async function round(token = edge.token, looks = found): Promise<string> {
    const lines = [
      "ssl=yes",
      looks,
      // Without the five minutes after a failure.
      "min-error-interval=0",
      `cache=${join(api.folder, "cache")}`,
      `protocol=cloudflare, zone=shop.example, ttl=1, login=token, password=${token} ${name}`,
    ];
    const configuration = join(api.folder, "ddclient.conf");
    writeFileSync(configuration, `${lines.join("\n")}\n`, { mode: 0o600 });
    const program = join(packages, "usr/bin/ddclient");
    const options = ["-foreground", "-daemon=0", "-verbose", "-file", configuration, "-noquiet"];
    const ran = await api.run("/usr/bin/perl", [program, ...options], environmentOf(packages));
    return ran.stdout + ran.stderr;
  }

  it.each([
    ["an answer is lost", lost, "203.0.113.9"],
    ["a call is too early", tooMany, "192.0.2.1"],
  ])("fails when %s, and is right after a later round", async (_, then, meanwhile) => {
    await edge.faults.api({ on: { operation: "dns_record_edit" }, times: 1, then });
    expect(await round()).toContain("FAILED");
    expect(await edge.dig(name)).toEqual([meanwhile]);
    // A round within the same second does nothing.
    await vi.waitFor(async () => expect(await round()).toContain("SUCCESS"));
    expect(await edge.dig(name)).toEqual(["203.0.113.9"]);
    const updates = await edge.calls.all({ operation: "dns_record_edit" });
    expect(updates.map(({ status }) => status)).toEqual([(then as { status?: number }).status ?? 500, 200]);
  });

  it("forgets the failure if the address is in its configuration", async () => {
    const fixed = "use=ip, ip=203.0.113.9";
    await edge.faults.api({ on: { operation: "dns_record_edit" }, times: 1, then: tooMany });
    expect(await round(edge.token, fixed)).toContain("FAILED");
    await edge.calls.clear();
    expect(await round(edge.token, fixed)).toMatch(/SUCCESS: .*IP address was already set to 203\.0\.113\.9/);
    expect(await calls()).toEqual([]);
    expect(await edge.dig(name)).toEqual(["192.0.2.1"]);
  });

  it("takes an expired token for a lost connection", async () => {
    const token = await edge.tokenWith(["DNS Write", "Zone Read"], { zone, expires: await inAnHour() });
    await edge.clock.advance("2 hours");
    expect(await round(token)).toMatch(/FAILED: .*Could not connect to/);
    expect(await calls()).toEqual(["zone_list 401"]);
  });
});

describe("wrangler", () => {
  async function deploy(token = edge.token): Promise<WranglerRun> {
    const project = new Project({ ready: { api: edge.urls.api, account_id: edge.accountId } }, token);
    project.write({
      "index.js": "export default { fetch: () => new Response('hello'), scheduled() {} };",
      "wrangler.json": {
        name: "shop",
        main: "index.js",
        account_id: edge.accountId,
        compatibility_date: "2026-01-01",
        triggers: { crons: ["0 3 * * *"] },
      },
    });
    try {
      return await project.attempt(["deploy"]);
    } finally {
      project.remove();
    }
  }
  const path = (): string => `/accounts/${edge.accountId}/workers/scripts/shop`;
  const crons = async (): Promise<number> =>
    (await call<{ schedules: unknown[] }>(edge, "GET", `${path()}/schedules`)).schedules.length;
  const versions = async (): Promise<number> =>
    (await call<{ items: unknown[] }>(edge, "GET", `${path()}/versions`)).items.length;

  it("repeats an upload whose answer was lost, and so makes two versions", async () => {
    await edge.faults.api({ on: { operation: "script_upload" }, times: 1, then: lost });
    expect((await deploy()).code).toBe(0);
    expect((await calls()).filter((each) => each.startsWith("script_upload"))).toEqual([
      "script_upload 500 changes",
      "script_upload 200 changes",
    ]);
    expect([await versions(), await crons()]).toEqual([2, 1]);
  });

  it("waits as a 429 says for the upload, but gives up for the schedules", async () => {
    await edge.faults.api({ on: { operation: "script_upload" }, times: 1, then: tooMany });
    await edge.faults.api({ on: { operation: "script_schedules_put" }, times: 1, then: tooMany });
    const { code, output } = await deploy();
    expect([code, output]).toEqual([1, expect.stringContaining("only partially updated")]);
    expect([await versions(), await crons()]).toEqual([1, 0]);
    expect((await deploy()).code).toBe(0);
    expect(await crons()).toBe(1);
  });

  it("leaves a script without its schedules when the token expires after the upload", async () => {
    const token = await edge.tokenWith(["Workers Scripts Write", "Account Settings Read"], {
      expires: await inAnHour(),
    });
    await edge.faults.api({ on: { operation: "script_upload" }, then: { delayMs: 2500 } });
    const running = deploy(token);
    await vi.waitFor(async () => expect(await versions()).toBe(1), { timeout: 60_000, interval: 50 });
    await edge.clock.advance("2 hours", { settle: false });
    const { code, output } = await running;
    expect([code, output]).toEqual([1, expect.stringMatching(/expired|Unauthorized|Authentication/i)]);
    expect([await versions(), await crons()]).toEqual([1, 0]);
  });
});

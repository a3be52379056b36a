import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect as outer, it } from "vitest";
import { expect, test } from "../../src/testkit/vitest.ts";
import type { Selvedge } from "../../src/testkit/start-selvedge.ts";
import { temporaryFolder } from "../helpers/process.ts";

const call = async (edge: Selvedge, method: string, path: string, body?: object): Promise<string> => {
  const answer = await fetch(`${edge.urls.api}${path}`, {
    method,
    headers: { authorization: `Bearer ${edge.token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return ((await answer.json()) as { result: { id: string } }).result.id;
};

describe("the runner of vitest", () => {
  test("the matchers see calls and answers", async ({ edge }) => {
    const zone = await call(edge, "POST", "/zones", {
      account: { id: edge.accountId },
      name: "shop.example",
      type: "full",
    });
    const record = { type: "A", name: "www.shop.example", content: "192.0.2.1", ttl: 60 };
    await call(edge, "POST", `/zones/${zone}/dns_records`, record);
    await expect(edge).toHaveCalled("dns_record_create", { body: { name: "www.shop.example" } });
    await expect(edge).not.toHaveCalled("dns_record_create", { body: { name: "api.shop.example" } });
    await expect(edge).toHaveCalledOnly("zone_create", "dns_record_create");
    await expect(edge).toAnswer("www.shop.example", "A", ["192.0.2.1"]);
    await expect(expect(edge).toHaveCalledOnly("zone_create")).rejects.toThrow(
      /Not expected: dns_record_create/,
    );
    await expect(expect(edge).toAnswer("www.shop.example", "A", ["192.0.2.2"])).rejects.toThrow(
      /192\.0\.2\.1/,
    );
    await expect(expect(edge).toHaveCalled("zone_delete")).rejects.toThrow(
      /POST \/zones → 200 \(zone_create\)/,
    );
  });

  /** Whether the platform ran before the time of the test began. */
  let hasStarted = false;
  test.beforeEach(({ task }) => {
    hasStarted = "platform" in task.context;
  });
  test("the start of the platform does not count for the time of a test", ({ edge }) => {
    outer([hasStarted, edge.seed]).toEqual([true, expect.any(String)]);
  });

  test("the next test finds the start", async ({ edge }) => {
    outer(await edge.calls.all()).toEqual([]);
    await expect(edge).toHaveCalledOnly();
  });
});

/** A folder in which `selvedge` can be imported. */
function project(files: Record<string, string>): string {
  const folder = join(temporaryFolder(), "project");
  mkdirSync(join(folder, "node_modules"), { recursive: true });
  symlinkSync(resolve("."), join(folder, "node_modules/selvedge"));
  symlinkSync(resolve("node_modules/@playwright"), join(folder, "node_modules/@playwright"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

it("the runner of node:test resets between tests, and fails for calls of no operation", () => {
  const folder = project({
    "kit.test.mjs": `
      import { test } from "node:test";
      import { assertAnswers, assertCalledOnly, selvedge } from "selvedge/node-test";
      const edge = selvedge({ onUnknown: "fail" });
      const list = (path) => fetch(edge().urls.api + path, { headers: { authorization: "Bearer " + edge().token } });
      test("first", async () => {
        await list("/zones");
        await assertCalledOnly(edge(), "zone_list");
      });
      test("second", async () => {
        await assertCalledOnly(edge());
        await assertAnswers(edge(), "www.shop.example", "A", []);
      });
      test("third", () => list("/zonez"));
    `,
  });
  const env = { ...process.env, NODE_TEST_CONTEXT: undefined };
  const ran = spawnSync(process.execPath, ["--test", "kit.test.mjs"], {
    cwd: folder,
    encoding: "utf8",
    env,
    timeout: 120_000,
  });
  outer(ran.stdout).toMatch(/pass 2\n/);
  outer(ran.stdout).toMatch(/fail 1\n/);
  outer(ran.stdout).toContain("Calls of no operation: GET /zonez");
});

const chromium = spawnSync("which", ["chromium"], { encoding: "utf8" }).stdout.trim();
it.skipIf(chromium === "")(
  "the runner of Playwright opens hosts at the edge, and prints the calls of a test that fails",
  () => {
    const folder = project({
      "playwright.config.mjs": `export default {
        reporter: "line",
        use: { launchOptions: { executablePath: ${JSON.stringify(chromium)}, args: ["--no-sandbox"] } },
      };`,
      "site.spec.mjs": `
        import { expect, testWith } from "selvedge/playwright";
        const code = ${JSON.stringify("export default { fetch: ({ url }) => new Response(`<title>${url}</title>`, { headers: { 'content-type': 'text/html' } }) };")};
        import { writeFileSync } from "node:fs";
        writeFileSync("site.js", code);
        const test = testWith({ state: {
          zones: { "shop.example": { domains: { "www.shop.example": "site" } } },
          scripts: { site: { main: "site.js" } },
        } });
        for (const scheme of ["http", "https"])
          test(scheme, async ({ edge, page }) => {
            await page.goto(scheme + "://www.shop.example/bread");
            await expect(page).toHaveTitle(scheme + "://www.shop.example/bread");
            await expect(edge).toHaveCalledOnly();
          });
        test("a test that fails", ({ edge }) => expect(edge).toHaveCalled("zone_list"));
      `,
    });
    const args = [resolve("node_modules/@playwright/test/cli.js"), "test"];
    const ran = spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8", timeout: 120_000 });
    outer(ran.stdout).toMatch(/1 failed[^]*a test that fails[^]*2 passed/);
    outer(ran.stdout).toContain("Expected a call of zone_list");
    outer(ran.stdout + ran.stderr).toMatch(/seed \w+, clock .*, 0 calls/);
  },
);

describe("selvedge run", () => {
  const run = (folder: string, code: string, ...options: string[]) =>
    spawnSync(
      process.execPath,
      [
        resolve("bin/selvedge.js"),
        "run",
        ...options,
        "--",
        process.execPath,
        "--input-type=module",
        "--eval",
        code,
      ],
      { cwd: folder, encoding: "utf8", timeout: 120_000 },
    );
  const list = `const { CLOUDFLARE_BASE_URL: url, CLOUDFLARE_API_TOKEN: token } = process.env;
    const answer = await fetch(url + "/zones", { headers: { authorization: "Bearer " + token } });
    process.stdout.write(String(answer.status));`;

  it("gives the command the variables of the clients", () => {
    const folder = project({});
    const { status, stdout, stderr } = run(folder, list);
    outer([status, stdout, stderr]).toEqual([0, "200", ""]);
    outer(existsSync(join(folder, "selvedge-calls.har"))).toBe(false);
  });

  it("ends with the command's exit code, and leaves the calls when it fails", () => {
    const folder = project({});
    const { status, stderr } = run(folder, `${list} process.exitCode = 7;`, "--seed=one");
    outer(status).toBe(7);
    outer(stderr).toContain("seed one");
    const har = JSON.parse(readFileSync(join(folder, "selvedge-calls.har"), "utf8")) as {
      log: { entries: unknown[] };
    };
    outer(har.log.entries).toHaveLength(1);
  });

  it("says so when the command cannot be started", () => {
    const ran = spawnSync(process.execPath, [resolve("bin/selvedge.js"), "run", "--", "/no/such/command"], {
      encoding: "utf8",
      timeout: 120_000,
    });
    outer([ran.status, ran.stderr]).toEqual([1, outer.stringContaining("the command could not be started")]);
  });
});

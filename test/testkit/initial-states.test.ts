import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defineSeed, startSelvedge, type Selvedge } from "../../src/testkit/start-selvedge.ts";
import { apply } from "../../src/cli/migration/apply.ts";
import { openAccount } from "../../src/cli/migration/command-accounts.ts";
import { documentOfSeed } from "../../src/cli/testing/seed.ts";
import { temporaryFolder } from "../helpers/process.ts";
import { call } from "./helpers.ts";

/** Platforms that begin with a seed, and with the file of an import from such a platform. */
const folder = temporaryFolder();
const file = join(folder, "shop.json");
const seed = defineSeed({
  folder,
  zones: {
    "shop.example": {
      records: ["www 60 A 192.0.2.2", { type: "A", name: "direct", content: "192.0.2.3", proxied: true }],
      settings: { always_use_https: "on" },
      domains: { "api.shop.example": "prices" },
      rules: {
        http_request_origin: [
          {
            expression: 'http.host eq "direct.shop.example"',
            action: "route",
            action_parameters: { origin: { port: 8080 } },
          },
        ],
      },
    },
  },
  scripts: {
    prices: {
      main: "prices.js",
      compatibility_date: "2026-01-01",
      bindings: [
        { type: "kv_namespace", name: "PRICES", namespace: "prices" },
        { type: "queue", name: "JOBS", queue_name: "jobs" },
      ],
      schedules: ["0 3 * * *"],
    },
  },
  kv: { prices: { bread: "3 EUR" } },
  d1: ["orders"],
  queues: { jobs: { consumer: "prices" } },
});
const code = `export default {
  fetch: async (request, env) => new Response(await env.PRICES.get(new URL(request.url).pathname.slice(1))),
  queue() {}, scheduled() {},
};`;

let seeded: Selvedge;
beforeAll(async () => {
  writeFileSync(join(folder, "prices.js"), code);
  seeded = await startSelvedge({ seed: "shop", state: seed });
});
afterAll(() => seeded.close());

async function seen(edge: Selvedge): Promise<unknown> {
  const answer = await edge.fetch("https://api.shop.example/bread");
  return {
    records: await edge.dig("www.shop.example"),
    price: [answer.status, await answer.text()],
    redirect: (await edge.fetch("http://direct.shop.example/")).status,
  };
}
const content = { records: ["192.0.2.2"], price: [200, "3 EUR"], redirect: 301 };
const zones = async (edge: Selvedge): Promise<{ id: string; name: string }[]> => call(edge, "GET", "/zones");

describe("a platform that begins with a seed", () => {
  it("has its content, and no calls", async () => {
    expect(await seeded.calls.all()).toEqual([]);
    expect(await seen(seeded)).toEqual(content);
  });

  it("has it again after a reset, with the same ids", async () => {
    const [zone] = await zones(seeded);
    await call(seeded, "DELETE", `/zones/${zone!.id}`);
    await seeded.reset();
    expect(await zones(seeded)).toMatchObject([{ id: zone!.id, name: "shop.example" }]);
    expect(await seen(seeded)).toEqual(content);
  });

  it("does not start with what an operation refuses, and says so", async () => {
    const refused = startSelvedge({ state: { zones: { "not a zone": {} } } });
    await expect(refused).rejects.toThrow(/create\s+zone\s+not a zone/);
  });
});

it("many records are made in few calls, and by single ones if one of them is refused", async () => {
  const created = async (count: number, ...more: string[]): Promise<unknown[]> => {
    await seeded.reset();
    const records = [...Array.from({ length: count }, (_, i) => `n${i} 60 A 192.0.2.${i}`), ...more];
    const text = JSON.stringify({ zones: { "large.example": { records } } });
    const document = documentOfSeed(join(folder, "large.json"), text);
    const { accountId, token, urls } = seeded;
    const profile = { name: "test", baseUrl: urls.api, token, accountId, dns: undefined };
    const opened = await openAccount(profile, ["large.example"], { callsPerSecond: 0 }, true);
    const { done, failures } = await apply(document, opened, false, () => {});
    const posts = await seeded.calls.all({ method: "POST", status: 200 });
    return [done.length, failures.map(({ step }) => step.key), posts.length];
  };
  // The zone, one call for 200 records, and one for each of the others.
  expect(await created(250)).toEqual([251, [], 52]);
  expect(await created(150, "n0 CNAME other.example.")).toEqual([151, ["CNAME n0.large.example"], 151]);
});

it("a platform begins with a file of import, and equals the place that was read", async () => {
  await seeded.reset();
  const args = ["bin/selvedge.js", "import", "cloudflare", "--out", file, "--rate", "0"];
  await promisify(execFile)(process.execPath, args, { env: { ...process.env, ...seeded.env } });
  await using edge = await startSelvedge({ seed: "shop", state: file });
  expect(await seen(edge)).toEqual(content);
  const tables = ["zones", "dns_records", "kv_namespaces", "scripts", "queues"];
  const state = await seeded.state(tables);
  expect(Object.keys(state)).toEqual(tables.toSorted());
  expect(await edge.state(tables)).toEqual(state);
});

import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defineSeed, startSelvedge, type Selvedge } from "../../src/testkit/start-selvedge.ts";
import { apply } from "../../src/cli/migration/apply.ts";
import { openAccount } from "../../src/cli/migration/command-accounts.ts";
import { readSeed } from "../../src/cli/testing/seed.ts";
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
  tokens: {
    reader: { permissions: ["DNS Read"], zone: "shop.example", expires: "1 hour" },
    "ci-deploy": { permissions: ["DNS Write", "Zone Read"] },
  },
  accounts: {
    Customer: {
      zones: { "customer.example": { records: ["www 60 A 192.0.2.7"] } },
      tokens: { reader: { permissions: ["Zone Read"] } },
    },
  },
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
const zones = async (
  edge: Selvedge,
  { accountId }: { accountId: string } = edge,
): Promise<{ id: string; name: string }[]> => call(edge, "GET", `/zones?account.id=${accountId}`);

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

  it("has tokens with their permissions, also after a reset and in a fork", async () => {
    const statusWith = async (
      edge: Selvedge,
      token: string,
      path: string,
      body?: object,
    ): Promise<number> => {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const method = body === undefined ? "GET" : "POST";
      const sent = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
      return (await fetch(`${edge.urls.api}${path}`, sent)).status;
    };
    const zone = (await zones(seeded))[0]!.id;
    const record = { type: "A", name: "new", content: "192.0.2.8", ttl: 60 };
    const records = `/zones/${zone}/dns_records`;
    const { reader, "ci-deploy": deploy } = seeded.tokens;
    expect(seeded.env["SELVEDGE_TOKEN_CI_DEPLOY"]).toBe(deploy);
    expect(await statusWith(seeded, reader!, records)).toBe(200);
    expect(await statusWith(seeded, reader!, records, record)).toBe(403);
    expect(await statusWith(seeded, deploy!, records, record)).toBe(200);
    await seeded.clock.advance("2 hours");
    expect(await statusWith(seeded, reader!, records)).toBe(401);
    await seeded.reset();
    expect(await statusWith(seeded, reader!, records)).toBe(200);
    await using fork = await seeded.fork();
    expect(await statusWith(fork, fork.tokens["reader"]!, records, record)).toBe(403);
    expect(fork.accounts["Customer"]!.env["CLOUDFLARE_BASE_URL"]).toBe(fork.urls.api);
    await using second = await fork.fork();
    expect([second.tokens, Object.keys(second.accounts)]).toEqual([
      seeded.tokens,
      Object.keys(seeded.accounts),
    ]);
  });

  it("has other accounts with their content", async () => {
    const { accountId, token, tokens } = seeded.accounts["Customer"]!;
    const answer = async (bearer: string): Promise<string[]> => {
      const headers = { authorization: `Bearer ${bearer}` };
      const found = (await (await fetch(`${seeded.urls.api}/zones`, { headers })).json()) as {
        result: { name: string; account: { id: string } }[];
      };
      return found.result.map(({ name, account }) => `${name} ${account.id === accountId}`);
    };
    expect(await answer(token)).toEqual(["customer.example true"]);
    expect(await answer(tokens["reader"]!)).toEqual(["customer.example true"]);
    expect(await seeded.dig("www.customer.example")).toEqual(["192.0.2.7"]);
  });

  it("does not start with a token that cannot be, and names its line", async () => {
    const path = join(folder, "tokens.json");
    writeFileSync(path, `{\n  "tokens": {\n    "ci": { "permissions": ["DNS Wriet"] }\n  }\n}`);
    await expect(startSelvedge({ state: path })).rejects.toThrow(
      /line 3, tokens\.ci: Expected the name of a permission group.*"DNS Wriet"/,
    );
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
    const { document } = readSeed(join(folder, "large.json"), text);
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
  // An import reads one account.
  const [other] = await zones(seeded, seeded.accounts["Customer"]);
  await call(seeded, "DELETE", `/zones/${other!.id}`);
  const args = ["bin/selvedge.js", "import", "cloudflare", "--out", file, "--rate", "0"];
  await promisify(execFile)(process.execPath, args, { env: { ...process.env, ...seeded.env } });
  await using edge = await startSelvedge({ seed: "shop", state: file });
  expect(await seen(edge)).toEqual(content);
  const tables = ["zones", "dns_records", "kv_namespaces", "scripts", "queues"];
  const state = await seeded.state(tables);
  expect(Object.keys(state)).toEqual(tables.toSorted());
  expect(await edge.state(tables)).toEqual(state);
});

import { fc } from "../helpers/properties.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ownerToken, startTestServer, type TestServer } from "../helpers/server.ts";
import { esm, upload } from "./harness.ts";

/** Uploads with arbitrary values in any position are accepted or refused, and never cause an internal error. */
let server: TestServer;
let account: string;
let zone: string;
let versionId: string;
const code = "export default { fetch() {} };";

beforeAll(async () => {
  server = await startTestServer();
  account = `/accounts/${server.ready.account_id}`;
  zone = (await server.call("POST", "/zones", { name: "hostile.example" })).body.result.id as string;
  const uploaded = await put({ main_module: "m.mjs" });
  versionId = uploaded.body.result.deployment_id as string;
  await server.call("POST", `${account}/edge/dispatch/namespaces`, { name: "n" });
});
afterAll(() => server.close(1000));

const put = async (metadata: unknown, path = `${account}/workers/scripts/target`, method = "PUT") =>
  upload(
    server,
    path,
    [
      { name: "metadata", content: JSON.stringify(metadata) },
      { name: "settings", content: JSON.stringify(metadata) },
      { name: "m.mjs", filename: "m.mjs", content: code, type: esm },
    ],
    method,
  );

const junk = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom(
    "",
    "\0",
    "\ud800",
    "__proto__",
    "constructor",
    "../x",
    "a".repeat(70_000),
    -1,
    1e308,
    null,
  ),
);

/** A copy with one value replaced or added. */
function mutated(value: unknown, path: readonly number[], by: unknown, key: string): unknown {
  if (typeof value !== "object" || value === null || path.length === 0) return by;
  const copy = (Array.isArray(value) ? [...value] : { ...value }) as Record<string, unknown>;
  const keys = [...Object.keys(copy), key];
  const at = keys[path[0]! % keys.length]!;
  Object.defineProperty(copy, at, {
    value: mutated(copy[at], path.slice(1), by, key),
    enumerable: true,
    configurable: true,
    writable: true,
  });
  return copy;
}
const mutations = (value: unknown) =>
  fc
    .tuple(fc.array(fc.nat(20), { maxLength: 4 }), junk, fc.constantFrom("extra", "__proto__", "toString"))
    .map(([path, by, key]) => mutated(value, path, by, key));

const metadata = {
  main_module: "m.mjs",
  compatibility_date: "2026-01-01",
  compatibility_flags: ["nodejs_compat"],
  bindings: [
    { type: "plain_text", name: "A", text: "a" },
    { type: "secret_text", name: "S", text: "s" },
    { type: "json", name: "J", json: { a: [1] } },
    { type: "inherit", name: "I", old_name: "A" },
    { type: "kv_namespace", name: "K", namespace_id: "x" },
    {
      type: "dispatch_namespace",
      name: "D",
      namespace: "n",
      outbound: { worker: { service: "target" }, params: [{ name: "p" }] },
    },
  ],
  tags: ["a"],
  limits: { cpu_ms: 10, subrequests: 5 },
  observability: { enabled: true },
  placement: { mode: "smart" },
  annotations: { "workers/tag": "t" },
  keep_bindings: ["secret_text"],
  assets: {
    jwt: "a.b.c",
    config: { html_handling: "none", _headers: "/*\n  a: b", run_worker_first: ["/a"] },
  },
  migrations: {},
};

describe("forms", () => {
  it.each([
    ["PUT", "/workers/scripts/target"],
    ["POST", "/workers/scripts/target/versions"],
    ["PATCH", "/workers/scripts/target/settings"],
    ["PUT", "/edge/dispatch/namespaces/n/scripts/target"],
  ])("%s %s", async (method, path) => {
    await fc.assert(
      fc.asyncProperty(mutations(metadata), async (body) => {
        expect((await put(body, `${account}${path}`, method)).status).toBeLessThan(500);
      }),
      { numRuns: 40 },
    );
  });

  it("whose fields are in brackets", async () => {
    const step = fc.constantFrom(
      "bindings",
      "",
      "0",
      "name",
      "type",
      "__proto__",
      "length",
      "99999999",
      "main_module",
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.array(step, { maxLength: 5 }), fc.string()), { maxLength: 6 }),
        async (fields) => {
          const parts = fields.map(([steps, content]) => ({
            name: `metadata${steps.map((each) => `[${each}]`).join("")}`,
            content,
          }));
          const answer = await upload(server, `${account}/workers/scripts/target`, parts);
          expect(answer.status).toBeLessThan(500);
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe("JSON", () => {
  it.each<[method: string, path: () => string, body: () => unknown]>([
    [
      "PATCH",
      () => `${account}/workers/scripts/target/script-settings`,
      () => ({ tags: ["a"], observability: { enabled: true } }),
    ],
    [
      "PUT",
      () => `${account}/workers/scripts/target/secrets`,
      () => ({ name: "S", text: "s", type: "secret_text" }),
    ],
    [
      "PATCH",
      () => `${account}/workers/scripts/target/secrets-bulk`,
      () => ({ secrets: { S: { text: "s", type: "secret_text" }, T: null } }),
    ],
    ["PUT", () => `${account}/workers/scripts/target/tags`, () => ["a", "b"]],
    [
      "POST",
      () => `${account}/workers/scripts/target/deployments`,
      () => ({
        strategy: "percentage",
        versions: [{ version_id: versionId, percentage: 100 }],
        annotations: {},
      }),
    ],
    [
      "POST",
      () => `${account}/workers/scripts/target/subdomain`,
      () => ({ enabled: true, previews_enabled: true }),
    ],
    [
      "PUT",
      () => `${account}/workers/scripts/target/routes`,
      () => [{ pattern: "hostile.example/*" }, "a.hostile.example/"],
    ],
    [
      "PUT",
      () => `${account}/workers/scripts/target/domains/records`,
      () => ({ override_scope: true, origins: [{ hostname: "d.hostile.example" }] }),
    ],
    [
      "POST",
      () => `/zones/${zone}/workers/routes`,
      () => ({ pattern: "hostile.example/r", script: "target" }),
    ],
    [
      "PUT",
      () => `${account}/workers/domains`,
      () => ({ hostname: "e.hostile.example", service: "target", zone_id: zone }),
    ],
    ["PUT", () => `${account}/workers/subdomain`, () => ({ subdomain: "hostile" })],
    [
      "PATCH",
      () => `${account}/workers/workers/target/versions/latest`,
      () => ({ env: { A: { type: "plain_text", text: "a" }, S: null }, annotations: {} }),
    ],
    [
      "POST",
      () => `${account}/workers/workers/target/versions`,
      () => ({
        main_module: "m.mjs",
        modules: [{ name: "m.mjs", content_type: esm, content_base64: Buffer.from(code).toString("base64") }],
      }),
    ],
    ["POST", () => `${account}/edge/dispatch/namespaces`, () => ({ name: "other" })],
    ["PUT", () => `${account}/edge/dispatch/namespaces/n`, () => ({ trusted_workers: true })],
    ["POST", () => `${account}/storage/kv/namespaces`, () => ({ title: "t" })],
  ])("%s %#", async (method, path, body) => {
    await fc.assert(
      fc.asyncProperty(mutations(body()), async (value) => {
        const answer = await server.call(method, path(), JSON.stringify(value));
        expect(answer.status).toBeLessThan(500);
      }),
      { numRuns: 40 },
    );
  });

  it("of values", async () => {
    const created = await server.call("POST", `${account}/storage/kv/namespaces`, { title: "values" });
    const base = `${account}/storage/kv/namespaces/${created.body.result.id}`;
    const pairs = [{ key: "k", value: "dg==", base64: true, expiration_ttl: 60, metadata: { a: 1 } }];
    const bulk = { keys: ["k"], type: "json", withMetadata: true };
    await fc.assert(
      fc.asyncProperty(mutations(pairs), mutations(bulk), mutations(["k"]), junk, async (a, b, c, key) => {
        const name = encodeURIComponent(
          typeof key === "string" ? key.toWellFormed().slice(0, 600) : JSON.stringify(key),
        );
        for (const answer of [
          await server.call("PUT", `${base}/bulk`, JSON.stringify(a)),
          await server.call("POST", `${base}/bulk/get`, JSON.stringify(b)),
          await server.call("POST", `${base}/bulk/delete`, JSON.stringify(c)),
          await server.call("PUT", `${base}/values/${name}?expiration_ttl=${name}`, JSON.stringify(a)),
          await server.call("GET", `${base}/keys?prefix=${name}&cursor=${name}`),
        ])
          expect(answer.status).toBeLessThan(500);
        const read = await fetch(`${server.ready.api}${base}/values/${name}`, {
          headers: { authorization: `Bearer ${ownerToken}` },
        });
        expect(read.status).toBeLessThan(500);
      }),
      { numRuns: 60 },
    );
  });
});

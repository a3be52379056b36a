import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { entries } from "../../src/control/audit/store.ts";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { pino } from "pino";
import { afterAll, beforeAll, expect, it } from "vitest";
import { operations } from "../../src/capabilities.ts";
import type { Operation } from "../../src/control/api/operation.ts";
import { shapeOf, type Shape } from "../../src/control/api/sensitive.ts";
import { startCollector, type Collector } from "../helpers/collector.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { requestEdge } from "../helpers/edge-request.ts";

/**
 * Every field that takes a secret gets a marked one, and so do the parts of visitors' requests that carry credentials. None
 * may appear in the audit log, the log of the server, the access logs, the traces, the metrics, or an error.
 */
const mark = "planted-7f3a";
const secretText = `${mark}-secret`;
const secretBase64 = Buffer.from(`${mark}-base64`).toString("base64");
const marks = [mark, secretBase64.slice(0, 16)];

const folder = mkdtempSync(join(tmpdir(), "selvedge-secrets-"));
let collector: Collector;
let server: TestServer;
let account: string;
let zone: string;
const logged: string[] = [];
const answers: string[] = [];

beforeAll(async () => {
  const log = new Writable({
    write: (chunk: Buffer, _encoding, done) => (logged.push(chunk.toString()), done()),
  });
  collector = await startCollector();
  const settings = {
    metricsListen: "127.0.0.1:0",
    otlpEndpoint: collector.url,
    accessLog: join(folder, "access.log"),
    apiAccessLog: join(folder, "api.log"),
  };
  server = await startTestServer(settings, pino({ level: "trace" }, log));
  account = server.ready.account_id;
  zone = await server.newZone("secrets.example");
});
afterAll(async () => {
  await server.close(1000);
  collector.close();
  rmSync(folder, { recursive: true });
});

const isSecret = (text: string): boolean => marks.some((each) => text.includes(each));

/** Calls as the owner. Keeps errors, which must show no secret; results may, where the client asked for one. */
async function call(method: string, path: string, body?: unknown, headers?: Record<string, string>) {
  const answer = await server.call(method, path, body, headers);
  if (!answer.body.success) answers.push(`${method} ${path}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

const scriptForm = (name: string): Promise<Response> => {
  const form = new FormData();
  const bindings = [{ type: "secret_text", name: "HIDDEN", text: secretText }];
  form.set("metadata", JSON.stringify({ main_module: "m.js", compatibility_date: "2026-01-01", bindings }));
  const code = `const key = "${mark}"; export default { fetch: () => new Response(key.length) };`;
  form.set("m.js", new File([code], "m.js", { type: "application/javascript+module" }));
  return fetch(`${server.ready.api}/accounts/${account}/workers/scripts/${name}`, {
    method: "PUT",
    headers: { authorization: "Bearer owner-token-for-tests" },
    body: form,
  });
};

it("calls that succeed with secrets show none", async () => {
  const of = `/accounts/${account}`;
  const tsig = { name: "key.example", algo: "hmac-sha256.", secret: secretBase64 };
  const { id } = (await call("POST", `${of}/secondary_dns/tsigs`, tsig)).result as { id: string };
  expect((await call("PUT", `${of}/secondary_dns/tsigs/${id}`, tsig)).success).toBe(true);
  expect((await call("DELETE", `${of}/secondary_dns/tsigs/${id}`)).success).toBe(true);

  expect((await scriptForm("holder")).status).toBe(200);
  const script = `${of}/workers/scripts/holder`;
  expect(
    (await call("PUT", `${script}/secrets`, { name: "ONE", text: secretText, type: "secret_text" })).success,
  ).toBe(true);
  const secrets = { TWO: { text: secretText, type: "secret_text" } };
  expect((await call("PATCH", `${script}/secrets-bulk`, { secrets })).success).toBe(true);

  const namespaces = `${of}/storage/kv/namespaces`;
  const kv = (await call("POST", namespaces, { title: "values" })).result as { id: string };
  expect(
    (await call("PUT", `${namespaces}/${kv.id}/values/k`, secretText, { "content-type": "text/plain" }))
      .success,
  ).toBe(true);
  expect((await call("PUT", `${namespaces}/${kv.id}/bulk`, [{ key: "l", value: secretText }])).success).toBe(
    true,
  );

  const queue = (await call("POST", `${of}/queues`, { queue_name: "q" })).result as { queue_id: string };
  expect((await call("POST", `${of}/queues/${queue.queue_id}/messages`, { body: secretText })).success).toBe(
    true,
  );
});

/** A value of the shape with a mark in each sensitive field, and in all free-form data. */
function planted(shape: Shape, depth = 0): unknown {
  if (shape.isSensitive || depth > 6) return secretText;
  if (shape.fields.size > 0)
    return Object.fromEntries([...shape.fields].map(([name, field]) => [name, planted(field, depth + 1)]));
  if (shape.items !== undefined) return [planted(shape.items, depth + 1)];
  if (shape.values !== undefined) return { any: planted(shape.values, depth + 1) };
  return shape.isShown ? "plain" : secretText;
}

function hasSensitive(shape: Shape, seen = new Set<Shape>()): boolean {
  if (seen.has(shape)) return false;
  seen.add(shape);
  const inner = [...shape.fields.values(), shape.items, shape.values].filter((each) => each !== undefined);
  return shape.isSensitive || inner.some((each) => hasSensitive(each, seen));
}

const takesSecrets = operations.filter(
  ({ body, method }) => body !== undefined && method !== "GET" && hasSensitive(shapeOf(body)),
);

it.each(takesSecrets.map((operation) => [operation.id, operation] as const))(
  "%s repeats no secret in an error",
  async (_id, operation: Operation) => {
    const known: Record<string, string> = { account_id: account, zone_id: zone, script_name: "holder" };
    const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => known[name] ?? "f".repeat(32));
    await call(operation.method, path, planted(shapeOf(operation.body!)));
    // Each sensitive field of the wrong type, and too long.
    const whole = planted(shapeOf(operation.body!));
    if (typeof whole !== "object" || whole === null || Array.isArray(whole)) return;
    for (const [name, field] of shapeOf(operation.body!).fields)
      if (field.isSensitive)
        for (const wrong of [{ nested: secretText }, [secretText], secretText.repeat(10_000)])
          await call(operation.method, path, { [name]: wrong });
  },
);

it("visits with credentials show none", async () => {
  await server.call("POST", `/zones/${zone}/dns_records`, {
    ...{ type: "A", name: "www", content: "127.0.0.1" },
    proxied: true,
  });
  const headers = {
    authorization: `Bearer ${secretText}`,
    cookie: `session=${secretText}`,
    referer: `http://user:${secretText}@before.example/?access_token=${secretText}#${secretText}`,
    traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    tracestate: `vendor=${secretText}`,
  };
  const path = `/private?sig=${secretText}&%74oken=${secretText}&a=b`;
  await requestEdge(server.ready.edge, "www.secrets.example", path, headers);
  const { attributes } = await collector.find(({ name }) => name === "edge GET");
  expect(attributes).toMatchObject({
    "url.path": "/private",
    "url.query": expect.stringContaining("a=b") as string,
  });
});

it("no planted secret is in the audit log, the server's log, the access logs, the traces, the metrics, or an error", async () => {
  const rows = await entries(server.services.storage.read).selectAll().execute();
  expect(rows.length).toBeGreaterThan(8);
  expect(rows.map((row) => JSON.stringify(row)).filter(isSecret)).toEqual([]);
  expect(logged.filter(isSecret)).toEqual([]);
  expect(answers.filter(isSecret)).toEqual([]);
  expect(isSecret(await (await fetch(server.ready.metrics!)).text())).toBe(false);
  await Promise.all(server.services.accessLogWriters.map((lines) => lines.flush()));
  for (const [name, lines] of [
    ["access.log", 1],
    ["api.log", takesSecrets.length],
  ] as const) {
    const written = readFileSync(join(folder, name), "utf8").split("\n").slice(0, -1);
    expect(written.length).toBeGreaterThanOrEqual(lines);
    expect(written.filter(isSecret)).toEqual([]);
  }
  // Each call has a span of its own, and one more tells that all before it have arrived.
  await call("PATCH", `/zones/${zone}`, { paused: true });
  await collector.find(({ attributes }) => attributes["selvedge.operation"] === "zone_edit");
  expect(collector.spans.length).toBeGreaterThan(takesSecrets.length);
  expect(collector.spans.map(spanText).filter(isSecret)).toEqual([]);
  expect(collector.refused).toEqual([]);
});

/** JSON has no big integers, which are times here. */
const spanText = (span: object): string =>
  JSON.stringify(span, (_key, value: unknown) => (typeof value === "bigint" ? String(value) : value));

/** Names of fields that take a secret, unless they are listed here with the reason. */
const secretName =
  /secret|password|passphrase|private|token|^text$|^sql$|^params$|^payload$|credential|pepper/i;
const harmless = new Set(["private_routing", "trusted_workers", "secrets"]);

it("fields with the name of a secret are marked as sensitive", () => {
  const shown: string[] = [];
  const walk = (id: string, shape: Shape, seen: Set<Shape>): void => {
    if (seen.has(shape)) return;
    seen.add(shape);
    for (const [name, field] of shape.fields) {
      if (secretName.test(name) && field.isShown && !field.isSensitive && !harmless.has(name))
        shown.push(`${id}: ${name}`);
      walk(id, field, seen);
    }
    if (shape.items !== undefined) walk(id, shape.items, seen);
    if (shape.values !== undefined) walk(id, shape.values, seen);
  };
  const read = new Set(operations.filter(({ method }) => method !== "GET").map(({ path }) => path));
  for (const { id, body, result, method, path } of operations) {
    if (body !== undefined) walk(id, shapeOf(body), new Set());
    if (method === "GET" && result !== undefined && read.has(path)) walk(id, shapeOf(result), new Set());
  }
  expect(shown).toEqual([]);
});

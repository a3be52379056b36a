import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { isDeepStrictEqual, promisify } from "node:util";
import { gunzipSync } from "node:zlib";
import Cloudflare from "cloudflare";
import { beforeAll, expect, it } from "vitest";
import { clients } from "../../dashboard/code/clients.ts";
import { renderings, withoutSecrets } from "../../dashboard/code/render.ts";
import { methodOf, pathOf, type Call } from "../../dashboard/core/client.ts";
import type { Bundle, BundledFile } from "../../src/platform/dashboard/bundle.ts";
import { buildConsole } from "../../src/platform/dashboard/files.ts";
import openapi from "../../openapi.json" with { type: "json" };
import { startTestServer } from "../helpers/server.ts";
import { runTypeScript } from "./run-typescript.ts";

const kilobyte = 1000;
let bundle: Bundle;
beforeAll(async () => {
  bundle = JSON.parse(await buildConsole()) as Bundle;
});
const gzipBytes = ({ gzip = "", body }: BundledFile): number => Buffer.from(gzip || body, "base64").length;

it("loads at most 60 KB of code and 15 KB of styles before the first screen, and 25 KB for a screen", () => {
  const first = [...bundle.page.matchAll(/assets\/([\w.-]+)"/g)].map(([, name]) => name!);
  const bytesOf = (names: readonly string[], ending: string): number =>
    names
      .filter((name) => name.endsWith(ending))
      .reduce((sum, name) => sum + gzipBytes(bundle.assets[name]!), 0);
  expect(bytesOf(first, ".js")).toBeLessThan(60 * kilobyte);
  expect(bytesOf(first, ".css")).toBeLessThan(15 * kilobyte);
  const screens = bundle.screens.map(({ pattern, names }) => [pattern, bytesOf(names, ".js")] as const);
  expect(screens.filter(([, bytes]) => bytes > 25 * kilobyte)).toEqual([]);
});

it("names the code of every screen, so that the page loads it together with the first file", async () => {
  // Its types are those of the console, which this test is not compiled with.
  const source = new URL("../../dashboard/shell/routes.ts", import.meta.url).href;
  const { routes } = (await import(source)) as { routes: readonly { pattern: string }[] };
  const byPattern = new Map(bundle.screens.map(({ pattern, names }) => [pattern, names]));
  expect([...byPattern.keys()].toSorted()).toEqual(routes.map(({ pattern }) => pattern).toSorted());
  for (const [pattern, names] of byPattern) expect([pattern, names.length]).not.toEqual([pattern, 0]);
});

it("compresses what it serves", () => {
  const script = Object.values(bundle.assets).find(({ gzip }) => gzip !== undefined)!;
  expect(gunzipSync(Buffer.from(script.gzip!, "base64")).toString("base64")).toBe(script.body);
});

it("knows operations of the API, and methods of the official client", () => {
  const known = new Set(
    Object.entries(openapi.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    ),
  );
  const client = new Cloudflare({ apiToken: "token" }) as unknown as Record<string, unknown>;
  const methodOf = (path: string): unknown =>
    path
      .split(".")
      .reduce<unknown>((part, name) => (part as Record<string, unknown> | undefined)?.[name], client);
  const wrong = Object.entries(clients).filter(
    ([op, { client: path }]) =>
      !known.has(op) || (path !== undefined && typeof methodOf(path) !== "function"),
  );
  expect(wrong.map(([op]) => op)).toEqual([]);
});

it("names secrets as variables in code", () => {
  const body = { certificate: "PUBLIC", private_key: "PRIVATE" };
  const texts = renderings({
    op: "POST /zones/{zone_id}/custom_certificates",
    params: { zone_id: "a" },
    body,
  }).map(({ text }) => text);
  expect(texts.length).toBeGreaterThan(2);
  for (const text of texts) expect(text).not.toContain('"PRIVATE"');
  const op = "POST /zones/{zone_id}/dns_records";
  const record = renderings({ op, params: { zone_id: "a" }, body: { content: "%{ if } ${x}" } });
  expect(record.find(({ name }) => name === "Terraform")?.text).toContain('"%%{ if } $${x}"');
});

interface JsonSchema {
  $ref?: string;
  type?: string | string[];
  properties?: Record<string, JsonSchema>;
  items?: JsonSchema;
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  enum?: unknown[];
}
type Documented = Record<
  string,
  Record<string, { requestBody?: { content: Record<string, { schema: JsonSchema }> } }>
>;
interface Sent {
  method: string;
  path: string;
  body: string;
}

/** A value of a schema, with all of its fields. Its texts have the characters that shells and languages read. */
function sampleOf(schema: JsonSchema, depth = 0): unknown {
  const named = schema.$ref?.replace("#/components/schemas/", "");
  if (named !== undefined)
    return depth > 4
      ? null
      : sampleOf((openapi.components.schemas as Record<string, JsonSchema>)[named]!, depth + 1);
  if (schema.enum !== undefined) return schema.enum[0];
  const choice = schema.anyOf ?? schema.oneOf;
  if (choice !== undefined) return sampleOf(choice[0]!, depth);
  if (schema.properties !== undefined)
    return Object.fromEntries(
      Object.entries(schema.properties).map(([name, each]) => [name, sampleOf(each, depth + 1)]),
    );
  if (schema.items !== undefined) return depth > 4 ? [] : [sampleOf(schema.items, depth + 1)];
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  return (
    { integer: 7, number: 0.5, boolean: true, object: { "a b": null } }[type ?? ""] ??
    `it's "$HOME" \\ ü\n{x}`
  );
}

/** A call of each operation that the console's forms send, with values of all of its fields. */
function sampleCalls(): Call[] {
  return Object.keys(clients).map((op) => {
    const [method, path] = op.split(" ") as [string, string];
    const { requestBody } = (openapi.paths as unknown as Documented)[path]![method.toLowerCase()]!;
    const schema = requestBody?.content["application/json"]?.schema;
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
    return {
      op,
      params: Object.fromEntries(names.map((name) => [name, `a b/${name}'$HOME`])),
      ...(schema !== undefined && { body: without(names, sampleOf(schema)) }),
    };
  });
}

/** The official client has one set of names for the path and the body, and forms never send both. */
const without = (names: readonly string[], body: unknown): unknown =>
  Array.isArray(body)
    ? body
    : Object.fromEntries(Object.entries(body as object).filter(([name]) => !names.includes(name)));

/** The operations with an empty body take none, too. */
const orNone = (body: unknown): unknown => (isDeepStrictEqual(body, {}) ? undefined : body);
const jsonOf = (text: string): unknown => (text === "" ? undefined : JSON.parse(text));

it("51: curl and the official client send what the forms send", async () => {
  const received: Sent[] = [];
  const recorder = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (part: string) => (body += part));
    request.on("end", () => {
      received.push({ method: request.method!, path: request.url!, body });
      response.setHeader("content-type", "application/json").end('{"success":true,"result":{}}');
    });
  });
  await once(recorder.listen(0, "127.0.0.1"), "listening");
  const base = `http://127.0.0.1:${(recorder.address() as AddressInfo).port}`;
  const wrong: unknown[] = [];
  const compare = (tool: string, call: Call, sent: Sent | undefined): void => {
    const shown = withoutSecrets(call);
    const expected = {
      method: methodOf(call),
      path: decodeURIComponent(pathOf(call)),
      body: orNone(shown.body),
    };
    const got = sent && { ...sent, path: decodeURIComponent(sent.path), body: orNone(jsonOf(sent.body)) };
    if (!isDeepStrictEqual(got, expected)) wrong.push({ tool, op: call.op, got, expected });
  };
  const calls = sampleCalls();
  const textOf = (call: Call, tool: string): string | undefined =>
    renderings(call).find(({ name }) => name === tool)?.text;

  const environment = { CLOUDFLARE_BASE_URL: base, CLOUDFLARE_API_TOKEN: "token" };
  const script = calls.map((call) => `${textOf(call, "curl")!} -s -o /dev/null`).join("\n");
  await promisify(execFile)("bash", ["-c", script], { env: { ...process.env, ...environment } });
  for (const call of calls) compare("curl", call, received.shift());

  for (const call of calls) {
    const text = textOf(call, "TypeScript");
    if (text === undefined) continue;
    await runTypeScript(text, Cloudflare, environment);
    compare("TypeScript", call, received.shift());
  }
  recorder.close();
  expect(wrong).toEqual([]);
});

it("56: is not there if it is off, and the API is unchanged", async () => {
  const server = await startTestServer({ dashboard: "off" });
  const { origin } = new URL(server.ready.dashboard);
  const status = async (path: string): Promise<number> => (await fetch(`${origin}${path}`)).status;
  expect([
    await status("/dashboard/"),
    await status("/dashboard/session"),
    (await server.call("GET", "/zones")).status,
  ]).toEqual([404, 404, 200]);
  await server.close(0);
});

it("6, 7: a cookie without the page counts for nothing, and does not reach scripts and origins at the edge", async () => {
  const { removeConsoleCookies } = await import("../../src/edge/http/console-cookies.ts");
  const { visitorHeaders } = await import("../../src/edge/http/headers.ts");
  const cookie = "a=1; __Host-selvedge=secret; selvedge_session=secret; b=selvedge";
  const request = { rawHeaders: ["Cookie", cookie, "X", "y"], headers: { cookie } };
  removeConsoleCookies(request);
  expect(request).toEqual({
    rawHeaders: ["Cookie", "a=1; b=selvedge", "X", "y"],
    headers: { cookie: "a=1; b=selvedge" },
  });
  const only = {
    rawHeaders: ["cookie", "selvedge_session=secret"],
    headers: { cookie: "selvedge_session=secret" },
  };
  removeConsoleCookies(only);
  expect(only).toEqual({ rawHeaders: [], headers: {} });
  const pairs = ["selvedge_session=x; Path=/", "=selvedge_session=x", " = __Host-selvedge=x", "c=d"];
  expect(
    visitorHeaders(
      pairs.flatMap((pair) => ["Set-Cookie", pair]),
      "",
    ),
  ).toEqual(["Set-Cookie", "c=d"]);
});

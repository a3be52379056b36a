import { gunzipSync } from "node:zlib";
import Cloudflare from "cloudflare";
import { beforeAll, expect, it } from "vitest";
import { clients } from "../../dashboard/code/clients.ts";
import { renderings } from "../../dashboard/code/render.ts";
import type { Bundle, BundledFile } from "../../src/platform/dashboard/bundle.ts";
import { buildConsole } from "../../src/platform/dashboard/files.ts";
import openapi from "../../openapi.json" with { type: "json" };
import { startTestServer } from "../helpers/server.ts";

const kilobyte = 1000;
let bundle: Bundle;
beforeAll(async () => {
  bundle = JSON.parse(await buildConsole()) as Bundle;
});
const gzipBytes = ({ gzip = "", body }: BundledFile): number => Buffer.from(gzip || body, "base64").length;

it("loads at most 60 KB of code and 15 KB of styles before the first screen, and 25 KB for a screen", () => {
  const page = Buffer.from(bundle.page.body, "base64").toString();
  const first = [...page.matchAll(/assets\/([\w.-]+)"/g)].map(([, name]) => name!);
  const bytesOf = (names: readonly string[], ending: string): number =>
    names
      .filter((name) => name.endsWith(ending))
      .reduce((sum, name) => sum + gzipBytes(bundle.assets[name]!), 0);
  expect(bytesOf(first, ".js")).toBeLessThan(60 * kilobyte);
  expect(bytesOf(first, ".css")).toBeLessThan(15 * kilobyte);
  // The table of operations is what the API's screen shows.
  const large = Object.entries(bundle.assets).filter(
    ([name, file]) => !first.includes(name) && !name.startsWith("api-") && gzipBytes(file) > 25 * kilobyte,
  );
  expect(large.map(([name]) => name)).toEqual([]);
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

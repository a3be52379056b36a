import { afterAll, beforeAll, expect, test } from "vitest";
import { createZone } from "../snippets/example-platform.ts";
import { startHosting, startOutside, type Hosting, type Outside } from "./platform.ts";

/**
 * An origin trusts the edge's address for data about visitors. Scripts of other accounts fetch from the same
 * address.
 */
let hosting: Hosting;
let origin: Outside;
const forged = {
  "cf-connecting-ip": "192.0.2.77",
  "cf-connecting-ipv6": "2001:db8::77",
  "cf-ipcountry": "SE",
  "cf-ray": "0000000000000000-XXX",
  "cf-visitor": '{"scheme":"https"}',
  "cf-worker": "victim.example",
  "cf-ew-via": "1.aaaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbb",
  "selvedge-cf": '{"country":"SE"}',
  "true-client-ip": "192.0.2.77",
  cf_connecting_ip: "192.0.2.77",
};
const fetching = `export default { async fetch(request) {
  const { to, headers } = JSON.parse(decodeURIComponent(new URL(request.url).search.slice(1)));
  const response = await fetch(to, { headers });
  return new Response(response.headers.get("x-seen"));
} };`;

beforeAll(async () => {
  hosting = await startHosting({ privateNetworks: "all" });
  origin = await startOutside(({ headers }, response) => {
    response.setHeader("x-seen", encodeURIComponent(JSON.stringify(headers))).end();
  });
  origin.server.on("upgrade", ({ headers }, socket) => {
    const seen = encodeURIComponent(JSON.stringify(headers));
    socket.end(`HTTP/1.1 403 Forbidden\r\nx-seen: ${seen}\r\ncontent-length: 0\r\n\r\n`);
  });
  await hosting.deploy("fetcher", fetching);
  await createZone(hosting.ready.api, "snipped.example", origin.port, [{ name: "fetching", code: fetching }]);
});
afterAll(async () => {
  await origin.close();
  await hosting.close(0);
});

async function seenFrom(host: string, headers: object): Promise<Record<string, string>> {
  const asked = encodeURIComponent(JSON.stringify({ to: origin.url, headers }));
  const { status, body } = await hosting.askHost(host, `/?${asked}`);
  expect(status, body).toBe(200);
  return JSON.parse(decodeURIComponent(body)) as Record<string, string>;
}

test.each([
  ["script", {}],
  ["script", { upgrade: "websocket" }],
  ["snippet", {}],
])("an origin gets nothing from a %s that only the edge may say (%o)", async (kind, more) => {
  const host = kind === "script" ? hosting.hostOf("fetcher") : "snipped.example";
  const seen = await seenFrom(host, { ...forged, ...more, "x-own": "mine", "x-forwarded-proto": "https" });
  expect(seen).toMatchObject({ "x-own": "mine", "x-forwarded-proto": "https" });
  const believed = Object.entries(forged).filter(([name, value]) => seen[name] === value);
  expect(believed).toEqual([]);
});

test("an origin receives the visitor's address if the script passes it on", async () => {
  const seen = await seenFrom(hosting.hostOf("fetcher"), { "cf-connecting-ip": "127.0.0.1" });
  expect(seen).toMatchObject({ "cf-connecting-ip": "127.0.0.1" });
});

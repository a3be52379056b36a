import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { askWhole, createZone, listenLocally, type LocalServer } from "./example-platform.ts";

/** A snippet that breaks the base of its wrapper breaks only itself. */
const answers = 'export default { async fetch(request) { return new Response("mine") } };';
const passes = "export default { async fetch(request) { return fetch(request) } };";
const sabotage: Record<string, string> = {
  json: `JSON.stringify = () => '{"type":"answer","run":"0.1"}'; JSON.parse = () => []; ${passes}`,
  arrays: `Array.prototype.push = () => 1; Array.prototype[Symbol.iterator] = null; Array.prototype.shift = null; ${passes}`,
  headers: `Headers.prototype[Symbol.iterator] = function* () { yield ["a\\r\\nb", "\\u0000"]; yield ["transfer-encoding", "chunked"] }; ${answers}`,
  statuses: `Object.defineProperty(Response.prototype, "status", { get: () => 99999 }); ${answers}`,
  encoders: `TextEncoder.prototype.encode = () => new Uint8Array(1e6); Uint8Array.prototype.set = () => {}; ${answers}`,
};

let server: TestServer;
let origin: LocalServer;
beforeAll(async () => {
  origin = await listenLocally((_request, response) => void response.end("origin"));
  server = await startTestServer({ snippetCpuMs: 500 });
  await createZone(server.ready.api, "innocent.example", origin.port, [{ name: "innocent", code: passes }]);
  for (const [name, code] of Object.entries(sabotage))
    await createZone(server.ready.api, `${name}.example`, origin.port, [{ name, code }]);
});
afterAll(async () => {
  await server.close(1000);
  origin.close();
});

it.each(Object.keys(sabotage))("%s", async (name) => {
  const { status, headers, body } = await askWhole(server.ready.edge, `${name}.example`, {
    headers: { accept: "application/json" },
  });
  // It responds, or fails with its own error without the platform's frames.
  if (status !== 200)
    expect([status, JSON.parse(body)]).toEqual([500, { error: expect.objectContaining({ code: 1206 }) }]);
  expect(JSON.stringify(headers)).not.toContain("selvedge-");
  const innocent = await askWhole(server.ready.edge, "innocent.example", {});
  expect([innocent.status, innocent.body]).toEqual([200, "origin"]);
});

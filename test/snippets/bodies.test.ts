import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { askWhole, createZone, listenLocally, type LocalServer } from "./example-platform.ts";

/** Snippets selected by rules about the body: the snippets and the origin still get the whole body. */
let server: TestServer;
let origin: LocalServer;
const code = `export default { async fetch(request) {
  const body = await request.text();
  return fetch(new Request(request.url, { method: "POST", headers: { "x-length": String(body.length) }, body }));
} };`;

beforeAll(async () => {
  server = await startTestServer();
  origin = await listenLocally((request, response) => {
    let length = 0;
    request.on("data", (chunk: Buffer) => (length += chunk.length));
    request.on("end", () => response.end(JSON.stringify([request.headers["x-length"] ?? "", length])));
  });
  await createZone(server.ready.api, "bodies.example", origin.port, [
    { name: "form", code, expression: 'any(http.request.body.form["kind"][*] == "wanted")' },
  ]);
});
afterAll(async () => {
  origin.close();
  await server.close(1000);
});

it.each([
  ["kind=wanted", true],
  ["kind=other", false],
  [`kind=wanted&rest=${"x".repeat(300_000)}`, true],
  [`rest=${"x".repeat(300_000)}&kind=wanted`, false],
  ["", false],
])("%.40s", async (body, isChosen) => {
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const answer = await askWhole(server.ready.edge, "bodies.example", {
    method: "POST",
    path: "/",
    headers,
    body,
  });
  expect(JSON.parse(answer.body)).toEqual([isChosen ? String(body.length) : "", body.length]);
});

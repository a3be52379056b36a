import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, expect, it, onTestFinished } from "vitest";
import { startTestServer } from "../helpers/server.ts";
import { requestEdge } from "../helpers/edge-request.ts";

const server = await startTestServer();
afterAll(() => server.close(1000));
const { client } = server;

it("an origin rule sends requests of a proxied record to another port", async () => {
  const origin = createServer((request, response) => response.end(`hello from ${request.headers.host}`));
  onTestFinished(() => void origin.close());
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  const { port } = origin.address() as AddressInfo;
  const zone_id = await server.newZone("origin.example");
  await client.dns.records.create({
    zone_id,
    type: "A",
    name: "www",
    content: "127.0.0.1",
    ttl: 1,
    proxied: true,
  });
  const ruleset = (await client.rulesets.phases.update("http_request_origin", {
    zone_id,
    rules: [{ action: "route", expression: "true", action_parameters: { origin: { port } } }],
  })) as { id: string };
  expect(await client.rulesets.phases.get("http_request_origin", { zone_id })).toEqual(ruleset);
  const answer = await requestEdge(server.ready.edge, "www.origin.example");
  expect(answer.body).toBe("hello from www.origin.example");
  await client.rulesets.phases.update("http_request_origin", {
    zone_id,
    rules: [
      { action: "route", expression: "true", action_parameters: { origin: { port: 1 } } },
      {
        action: "route",
        expression: 'http.host eq "www.origin.example" and starts_with(http.request.uri.path, "/app/")',
        action_parameters: { origin: { port }, host_header: "app.internal" },
      },
    ],
  });
  expect((await requestEdge(server.ready.edge, "www.origin.example", "/app/x")).body).toBe(
    "hello from app.internal",
  );
  expect((await requestEdge(server.ready.edge, "www.origin.example", "/other")).status).toBe(521);
  const misspelt = client.rulesets.phases.update("http_request_origin", {
    zone_id,
    rules: [{ action: "route", expression: 'http.hots eq "x"', action_parameters: { origin: { port } } }],
  });
  await expect(misspelt).rejects.toMatchObject({
    status: 400,
    errors: [
      {
        code: 20127,
        source: { pointer: "/body/rules/0/expression" },
        message: expect.stringMatching(
          /parsing error \(1:1\)[^]*unknown identifier[^]*Did you mean http\.host\?/,
        ) as string,
      },
    ],
  });
  await client.rulesets.delete(ruleset.id, { zone_id });
  await expect(client.rulesets.phases.get("http_request_origin", { zone_id })).rejects.toMatchObject({
    status: 404,
    errors: [{ code: 10003 }],
  });
});

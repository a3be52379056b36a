import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { plans } from "../../src/control/zones/plans.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { askWhole, createZone, example, listenLocally, type LocalServer } from "./example-platform.ts";

/** The fetch limit of a run by the zone's plan: 2 to 5, besides the one to the origin. */
let origin: LocalServer;
let service: LocalServer;
beforeAll(async () => {
  origin = await listenLocally((_request, response) => void response.end("origin"));
  service = await listenLocally((_request, response) => void response.end("part"));
});
afterAll(() => {
  origin.close();
  service.close();
});

it.each([
  ["pro", 2],
  ["business", 3],
  ["enterprise", 5],
] as const)("the plan %s allows %i", (plan, max) => {
  expect(plans[plan].snippetSubrequestsMax).toBe(max);
});

describe.each(["pro", "enterprise"] as const)("on the plan %s", (plan) => {
  const max = plans[plan].snippetSubrequestsMax;
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer({ defaultPlan: plan, privateNetworks: "all" });
    const code = example("too-many-fetches").replaceAll("http://api.test", service.url);
    const mixed = `export default { async fetch(request) {
      const first = await fetch(request); const statuses = [];
      for (let i = 0; i < ${max}; i++) statuses.push((await fetch(${JSON.stringify(service.url)})).status);
      return Response.json({ first: await first.text(), statuses });
    } };`;
    await createZone(server.ready.api, "many.example", origin.port, [{ name: "many", code }]);
    await createZone(server.ready.api, "mixed.example", origin.port, [{ name: "mixed", code: mixed }]);
  });
  afterAll(async () => server.close(1000));

  it("the fetch after the last allowed one is an error that the snippet catches", async () => {
    const { body } = await askWhole(server.ready.edge, "many.example", { path: "/?fetch=/part" });
    expect(JSON.parse(body)).toEqual({ statuses: Array.from({ length: max }, () => 200), error: true });
  });

  it("passing the request to the origin does not count", async () => {
    const { body } = await askWhole(server.ready.edge, "mixed.example", {});
    expect(JSON.parse(body)).toEqual({ first: "origin", statuses: Array.from({ length: max }, () => 200) });
  });
});

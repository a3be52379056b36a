import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { startSelvedge, type Selvedge } from "../../src/testkit/start-selvedge.ts";
import { call, deploy } from "./helpers.ts";

let edge: Selvedge;
beforeAll(async () => {
  edge = await startSelvedge({ seed: "dates", now: "2030-03-01T12:00:00Z", clock: "frozen" });
});
afterAll(() => edge.close());
beforeEach(() => edge.reset());

const source = `
import { DurableObject, WorkflowEntrypoint } from "cloudflare:workers";
const atLoad = Date.now();
export class Box extends DurableObject {
  now() { return Date.now(); }
}
export class Flow extends WorkflowEntrypoint {
  async run(event, step) {
    await step.sleepUntil("spring", new Date(Date.now() + 20 * 86_400_000));
    return step.do("now", async () => new Date().toISOString());
  }
}
export default { async fetch(request, env) {
  const made = new Date();
  const given = new Date("2001-02-03T04:05:06Z");
  class Own extends Date { get year() { return this.getUTCFullYear(); } }
  return Response.json({
    now: Date.now(),
    made: made.getTime(),
    text: Date(),
    box: await env.BOX.get(env.BOX.idFromName("box")).now(),
    given: given.toISOString(),
    utc: Date.UTC(2001, 1, 3),
    parsed: Date.parse("2001-02-03T00:00:00Z"),
    isDate: [made instanceof Date, made.constructor === Date, new Own(0).year, new Own(0) instanceof Date],
    loadedBefore: atLoad <= made.getTime(),
  });
} };`;

it("Date in scripts and objects follows the clock, and is otherwise the Date that it was", async () => {
  await deploy(edge, "dated", source, undefined, {
    bindings: [{ type: "durable_object_namespace", name: "BOX", class_name: "Box" }],
    migrations: { new_tag: "v1", new_sqlite_classes: ["Box"] },
  });
  const look = async (): Promise<Record<string, unknown>> =>
    (await (await edge.fetchScript("dated", "https://any.example/")).json()) as Record<string, unknown>;
  const near = async (value: unknown): Promise<boolean> =>
    Math.abs((value as number) - (await edge.clock.now()).getTime()) < 5000;
  const first = await look();
  expect(await Promise.all([first["now"], first["made"], first["box"]].map(near))).toEqual([
    true,
    true,
    true,
  ]);
  expect(String(first["text"])).toContain("2030");
  expect(first).toMatchObject({
    given: "2001-02-03T04:05:06.000Z",
    utc: Date.UTC(2001, 1, 3),
    parsed: Date.UTC(2001, 1, 3),
    isDate: [true, true, 1970, true],
    loadedBefore: true,
  });
  await edge.clock.advance("400 days");
  const later = await look();
  expect(await Promise.all([later["now"], later["made"], later["box"]].map(near))).toEqual([
    true,
    true,
    true,
  ]);
});

it("a workflow sleeps until a time of the clock", async () => {
  await deploy(edge, "dated", source, undefined, {
    bindings: [{ type: "durable_object_namespace", name: "BOX", class_name: "Box" }],
    migrations: { new_tag: "v1", new_sqlite_classes: ["Box"] },
  });
  const flow = `/accounts/${edge.accountId}/workflows/flow`;
  await call(edge, "PUT", flow, { script_name: "dated", class_name: "Flow" });
  const one = await edge.introspectWorkflowInstance("flow", "one");
  await call(edge, "POST", `${flow}/instances`, { instance_id: "one" });
  await edge.clock.advance("19 days");
  await one.waitForStatus("waiting");
  await edge.clock.advance("2 days");
  expect(await one.getOutput()).toMatch(/^2030-03-21T12:00/);
});

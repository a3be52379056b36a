import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { startWorkflowHosting, type WorkflowHosting } from "./hosting.ts";

/**
 * The creation rate is limited for each workflow and for the account. The clock stands still unless it is
 * advanced.
 */
let hosting: WorkflowHosting;
const batch = (count: number): object[] => Array.from({ length: count }, () => ({}));

beforeAll(async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  hosting = await startWorkflowHosting({ workflowCreateRate: 4, workflowAccountCreateRate: 6 });
  for (const name of ["first", "second"]) await hosting.workflow(name, "return 1;");
});
afterAll(async () => {
  vi.useRealTimers();
  await hosting.close(1000);
});

it("refuses creations above the limit of a workflow, then of the account, and allows them in the next second", async () => {
  const create = async (workflow: string, count: number) =>
    hosting.call("POST", `${hosting.instances(workflow)}/batch`, batch(count));
  expect((await create("first", 4)).status).toBe(200);
  const refused = await create("first", 1);
  expect(refused.status).toBe(429);
  expect(refused.body.errors[0]).toMatchObject({
    code: 10429,
    message: expect.stringContaining("create_rate"),
  });
  expect(Number(refused.headers.get("retry-after"))).toBe(1);
  expect((await create("second", 2)).status).toBe(200);
  expect((await create("second", 1)).status).toBe(429);
  vi.setSystemTime(Date.now() + 1000);
  expect((await create("first", 4)).status).toBe(200);
});

it("counts restarts; a batch that is larger than the limit needs a second for itself", async () => {
  vi.setSystemTime(Date.now() + 1000);
  await hosting.create("second", "again");
  await hosting.end("second", "again");
  const restart = async () =>
    (await hosting.call("PATCH", `${hosting.instances("second", "again")}/status`, { status: "restart" }))
      .status;
  for (let i = 0; i < 3; i++) expect(await restart()).toBe(200);
  expect(await restart()).toBe(429);
  const larger = async () =>
    (await hosting.call("POST", `${hosting.instances("second")}/batch`, batch(5))).status;
  expect(await larger()).toBe(429);
  vi.setSystemTime(Date.now() + 1000);
  expect(await larger()).toBe(200);
});

it("does not count existing instances: a repeated batch succeeds, also after other creations", async () => {
  vi.setSystemTime(Date.now() + 1000);
  const path = `${hosting.instances("first")}/batch`;
  const named = ["a", "b", "c", "d"].map((id) => ({ instance_id: id }));
  expect((await hosting.call("POST", path, named)).body.result).toHaveLength(4);
  for (let i = 0; i < 3; i++) expect((await hosting.call("POST", path, named)).status).toBe(200);
  expect((await hosting.call("POST", path, [...named, { instance_id: "e" }])).status).toBe(429);
  vi.setSystemTime(Date.now() + 250);
  expect((await hosting.call("POST", path, [...named, { instance_id: "e" }])).status).toBe(200);
});

it("delays scripts, and refuses them when the delay would be too long", async () => {
  vi.setSystemTime(Date.now() + 1000);
  await hosting.deploy("batches", {
    code: `export default { async fetch(request, env) {
      const { batches, count } = await request.json();
      const made = [];
      try { for (let i = 0; i < batches; i++) made.push((await env.WF.createBatch(Array(count).fill({}))).length); }
      catch ({ message }) { made.push(message); }
      return Response.json(made);
    } };`,
    bindings: [{ type: "workflow", name: "WF", workflow_name: "first" }],
  });
  const ask = async (body: object): Promise<unknown> =>
    JSON.parse((await hosting.ask("batches", "/", { method: "POST", body: JSON.stringify(body) })).body);
  // The clock stands still: each batch waits for all earlier ones.
  expect(await ask({ batches: 3, count: 2 })).toEqual([2, 2, 2]);
  expect(await ask({ batches: 1, count: 100 })).toEqual([100]);
  expect(await ask({ batches: 1, count: 1 })).toEqual([expect.stringContaining("create_rate")]);
});

it("returns the output when it waits for the end", async () => {
  vi.setSystemTime(Date.now() + 60_000);
  const { status, body } = await hosting.call("POST", `${hosting.instances("first")}?wait=60`, {
    id: "whole",
  });
  expect(status).toBe(200);
  expect(body.result).toMatchObject({ id: "whole", status: "complete", output: 1, error: null });
});

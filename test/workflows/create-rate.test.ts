import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { startWorkflowHosting, type WorkflowHosting } from "./hosting.ts";

/** What is created in a second is limited, for each workflow and for the account. Time stands still unless it is moved. */
let hosting: WorkflowHosting;
const batch = (count: number): object[] => Array.from({ length: count }, () => ({}));

beforeAll(async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  hosting = await startWorkflowHosting({ workflowCreateRate: 4, workflowAccountCreateRate: 6 });
  for (const name of ["first", "second"]) await hosting.workflow(name, "return 1;");
}, 60_000);
afterAll(async () => {
  vi.useRealTimers();
  await hosting.close(1000);
});

it("refuses what is too much of one workflow, then of the account, and allows it in the next second", async () => {
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

it("answers with the output where it waits for the end", async () => {
  vi.setSystemTime(Date.now() + 1000);
  const { status, body } = await hosting.call("POST", `${hosting.instances("first")}?wait=60`, {
    id: "whole",
  });
  expect(status).toBe(200);
  expect(body.result).toMatchObject({ id: "whole", status: "complete", output: 1, error: null });
});

import { afterAll, beforeAll, expect, it } from "vitest";
import { startWorkflowHosting, type WorkflowHosting } from "./hosting.ts";

/** Limits of creation (22, 23): the numbers are those of the acceptance cases. */
let hosting: WorkflowHosting;
beforeAll(async () => {
  hosting = await startWorkflowHosting({ workflowCreateRate: 0, workflowAccountCreateRate: 0 });
  await hosting.workflow("done", "return 1;");
});
afterAll(() => hosting.close(1000));

const create = async (body: object) => (await hosting.call("POST", hosting.instances("done"), body)).status;
const createBatch = async (ids: readonly string[]) =>
  hosting.call(
    "POST",
    `${hosting.instances("done")}/batch`,
    ids.map((id) => ({ id })),
  );
const idsOf = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}${i}`);

it("a batch of 100 skips existing and repeated ids (22)", async () => {
  const existing = idsOf("old", 10);
  expect((await createBatch(existing)).body.result).toHaveLength(10);
  const fresh = idsOf("new", 85);
  const { status, body } = await createBatch([...existing, ...fresh, ...fresh.slice(0, 5)]);
  expect(status).toBe(200);
  expect(body.result.map(({ id }: { id: string }) => id)).toEqual(fresh);
});

it("an invalid batch creates nothing (22)", async () => {
  expect((await createBatch([...idsOf("never", 5), "not ok"])).status).toBe(400);
  expect((await createBatch(idsOf("never", 101))).status).toBe(400);
  expect((await createBatch([])).status).toBe(400);
  expect((await hosting.call("GET", `${hosting.instances("done", "never0")}/status`)).status).toBe(404);
});

it.each([
  ["x".repeat(100), 200],
  ["_a", 200],
  ["x".repeat(101), 400],
  ["a b", 400],
  ["-a", 400],
  ["ä", 400],
  [`cf_${"0".repeat(64)}`, 400],
])("the id %j returns %i (23)", async (id, status) => {
  expect(await create({ id })).toBe(status);
});

it("parameters have a maximum size (23)", async () => {
  // Plus the quotes of the JSON string.
  expect(await create({ params: "x".repeat(2 ** 20 - 2) })).toBe(200);
  expect(await create({ params: "x".repeat(2 ** 20 - 1) })).toBe(400);
});

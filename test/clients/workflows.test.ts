import type Cloudflare from "cloudflare";
import { afterAll, beforeAll, expect, it } from "vitest";
import { operations } from "../../src/capabilities.ts";
import { workflowOperations } from "../../src/products/workflows/api/api.ts";
import { recordingClient } from "../helpers/recording-client.ts";
import { startWorkflowHosting, type WorkflowHosting } from "../workflows/hosting.ts";

/** The official client manages workflows and their instances, and parses every response. */
let hosting: WorkflowHosting;
let client: Cloudflare;
let called: Set<string>;
let account_id: string;
const workflow_name = "orders";

beforeAll(async () => {
  hosting = await startWorkflowHosting();
  ({ client, called } = recordingClient(hosting, operations));
  account_id = hosting.account;
  await hosting.workflow(
    workflow_name,
    `const price = await step.do("price", async () => event.payload.count * 2);
     const { payload } = await step.waitForEvent("paid", { type: "payment" });
     return { price, payload };`,
  );
});
afterAll(() => hosting.close(1000));

it("workflows and their versions are created, listed and deleted", async () => {
  const put = await client.workflows.update(workflow_name, {
    account_id,
    script_name: workflow_name,
    class_name: "Main",
    limits: { steps: 500 },
  });
  expect(put).toMatchObject({ name: workflow_name, class_name: "Main", is_deleted: 0 });
  const [listed] = await Array.fromAsync(client.workflows.list({ account_id }));
  expect(await client.workflows.get(workflow_name, { account_id })).toEqual(listed);
  const versions = await Array.fromAsync(client.workflows.versions.list(workflow_name, { account_id }));
  expect(versions.map(({ id }) => id)).toContain(put.version_id);
  expect(await client.workflows.versions.get(put.version_id, { account_id, workflow_name })).toMatchObject({
    limits: { steps: 500 },
  });
  for (const name of ["graph", "dag"]) {
    const path = `/accounts/${account_id}/workflows/${workflow_name}/versions/${put.version_id}/${name}`;
    expect(await client.get(path)).toMatchObject({ result: { graph: null } });
  }
  const settings = `/accounts/${account_id}/workflows/settings`;
  await client.patch(settings, { body: { default_retention: { success_retention: "5 minutes" } } });
  expect(await client.get(settings)).toMatchObject({
    result: { default_retention: { success_retention: 300_000 } },
  });
});

it("instances are created, listed, read, sent events, paused, resumed, restarted and terminated", async () => {
  const { instances } = client.workflows;
  const made = await instances.create(workflow_name, {
    account_id,
    instance_id: "one",
    params: JSON.stringify({ count: 21 }),
  });
  expect(made).toMatchObject({ id: "one", status: "queued" });
  const batch = { account_id, body: [{ instance_id: "one" }, { instance_id: "two" }] };
  expect((await Array.fromAsync(instances.bulk(workflow_name, batch))).map(({ id }) => id)).toEqual(["two"]);
  expect((await Array.fromAsync(instances.list(workflow_name, { account_id }))).map(({ id }) => id)).toEqual([
    "two",
    "one",
  ]);
  await hosting.until(workflow_name, "one", ["waiting"]);
  const of = { account_id, workflow_name };
  expect((await instances.status.edit("one", { ...of, status: "pause" })).status).toBe("paused");
  await instances.status.edit("one", { ...of, status: "resume" });
  expect(
    await instances.events.create("payment", { ...of, instance_id: "one", body: { by: "card" } }),
  ).toEqual({ instanceId: "one", timestamp: expect.stringMatching(/^\d{4}-.*Z$/) as string });
  expect(await hosting.end(workflow_name, "one")).toMatchObject({
    output: { price: 42, payload: { by: "card" } },
  });
  const details = await instances.get("one", of);
  expect(details).toMatchObject({ status: "complete", success: true, step_count: 1 });
  expect(details.steps).toMatchObject([
    { type: "step", name: "price-1", output: "42" },
    { type: "waitForEvent", name: "paid-1", event_type: "payment", output: '{"by":"card"}' },
  ]);
  expect(await instances.get("one", { ...of, simple: "true" })).toMatchObject({ step_count: 1, steps: [] });
  await instances.status.edit("one", { ...of, status: "restart" });
  await hosting.until(workflow_name, "one", ["waiting"]);
  expect((await instances.status.edit("one", { ...of, status: "terminate" })).status).toBe("terminated");
  await expect(instances.status.edit("one", { ...of, status: "terminate" })).rejects.toMatchObject({
    status: 409,
    errors: [{ code: 10401 }],
  });
  await expect(instances.get("nobody", of)).rejects.toMatchObject({ status: 404, errors: [{ code: 10400 }] });
  await expect(client.workflows.get("nothing", { account_id })).rejects.toMatchObject({
    status: 404,
    errors: [{ code: 10200 }],
  });
});

it("no step ends before it began, even if its event arrived earlier", async () => {
  await hosting.workflow(
    "late",
    `await step.sleep("first", 50); await step.waitForEvent("e", { type: "e" });`,
  );
  await hosting.create("late", "one");
  await hosting.call("POST", `${hosting.instances("late", "one")}/events`, { type: "e" });
  await hosting.end("late", "one");
  const { steps } = (await hosting.details("late", "one")) as { steps: { start: string; end: string }[] };
  expect(steps).toHaveLength(2);
  for (const { start, end } of steps) expect(Date.parse(end)).toBeGreaterThanOrEqual(Date.parse(start));
  await client.workflows.delete("late", { account_id });
});

it("operations without a method in the client", async () => {
  const base = hosting.instances(workflow_name);
  await client.post(base, { body: { id: "three", params: { count: 1 }, retention: "1 day" } });
  expect(await client.get(`${base}/three/status`)).toMatchObject({ result: { error: null, output: null } });
  await hosting.until(workflow_name, "three", ["waiting"]);
  expect(await client.get(`${base}/three/step?name=price-1&type=step`)).toMatchObject({
    result: { status: "complete", output: 2 },
  });
  expect(await client.get(`${base}/three/timeline`)).toContain("price-1");
  const subscription = await client.get(`${base}/three/subscribe`, { __binaryResponse: true }).asResponse();
  await client.post(`${base}/three/events`, { body: { type: "payment", payload: 7 } });
  const events = await subscription.text();
  expect(events.match(/"status":"\w+"/g)!.at(-1)).toBe('"status":"complete"');
  await client.post(base, { body: { id: "four" } });
  expect(await client.post(`${base}/batch/terminate`, { body: ["three", "four"] })).toMatchObject({
    result: { status: "ok", instancesTerminated: 1 },
  });
  expect(await client.get(`${base}/terminate`)).toMatchObject({ result: { status: "not_running" } });
  expect(await client.put(`${base}/terminate`)).toMatchObject({
    result: { status: "ok", instancesTerminated: 1 }, // the second of the batch
  });
  expect(await client.post(`${base}/batch/delete`, { body: { instances: ["two", "nobody"] } })).toMatchObject(
    {
      result: { deleted: [{ id: "two" }], errors: [{ id: "nobody", code: 10400 }] },
    },
  );
  expect(await client.delete(`${base}/three`)).toMatchObject({ result: { instanceId: "three" } });
  await client.workflows.delete(workflow_name, { account_id });
  expect(await Array.fromAsync(client.workflows.list({ account_id }))).toEqual([]);
});

it("every operation has been called", () => {
  expect(workflowOperations.map(({ id }) => id).filter((id) => !called.has(id))).toEqual([]);
});

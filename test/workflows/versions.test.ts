import { afterAll, beforeAll, expect, it } from "vitest";
import { scriptVersionsInUse } from "../../src/products/workflows/store/store-workflows.ts";
import { startWorkflowHosting, type WorkflowHosting } from "./hosting.ts";

let hosting: WorkflowHosting;
beforeAll(async () => {
  hosting = await startWorkflowHosting();
});
afterAll(() => hosting.close(1000));

const code = (version: number): string =>
  `const first = await step.do("first", async () => ${version}); await step.waitForEvent("go", { type: "go" }); return [first, ${version}];`;
const go = (id: string) =>
  hosting.call("POST", `${hosting.instances("versioned", id)}/events`, { type: "go" });

it("an instance keeps its first version; a restart uses the newest", async () => {
  await hosting.workflow("versioned", code(1));
  await hosting.create("versioned", "old");
  await hosting.until("versioned", "old", ["waiting"]);
  await hosting.workflow("versioned", code(2));
  await hosting.create("versioned", "new");
  await hosting.until("versioned", "new", ["waiting"]);
  const versions = await hosting.call("GET", `/accounts/${hosting.account}/workflows/versioned/versions`);
  expect(versions.body.result).toHaveLength(2);
  await go("old");
  await go("new");
  expect((await hosting.end("versioned", "old")).output).toEqual([1, 1]);
  expect((await hosting.end("versioned", "new")).output).toEqual([2, 2]);
  await hosting.call("PATCH", `${hosting.instances("versioned", "old")}/status`, { status: "restart" });
  await hosting.until("versioned", "old", ["waiting"]);
  await go("old");
  expect((await hosting.end("versioned", "old")).output).toEqual([2, 2]);
});

it("a script version is kept while an instance needs it", async () => {
  await hosting.create("versioned", "needs");
  await hosting.until("versioned", "needs", ["waiting"]);
  const { versionId } = hosting.services.scripts.live({ accountId: hosting.account }, "versioned")!;
  const { read } = hosting.services.workflowInstances;
  expect(await scriptVersionsInUse(read, [versionId, "other"])).toEqual([versionId]);
  await go("needs");
  await hosting.end("versioned", "needs");
  expect(await scriptVersionsInUse(read, [versionId])).toEqual([]);
});

it("an instance whose script was deleted fails with that reason", async () => {
  await hosting.workflow("gone", `await step.waitForEvent("go", { type: "go" });`);
  await hosting.create("gone", "one");
  await hosting.until("gone", "one", ["waiting"]);
  const deleted = await hosting.call(
    "DELETE",
    `/accounts/${hosting.account}/workers/scripts/gone?force=true`,
  );
  expect(deleted.status).toBe(200);
  await hosting.call("POST", `${hosting.instances("gone", "one")}/events`, { type: "go" });
  expect(await hosting.end("gone", "one")).toMatchObject({
    status: "errored",
    error: {
      name: "WorkflowInternalError",
      message: expect.stringContaining('of the script "gone"') as string,
    },
  });
});

it("an error names a class that the script does not export", async () => {
  await hosting.deploy("empty", "export default { fetch() {} };");
  await hosting.call("PUT", `/accounts/${hosting.account}/workflows/classless`, {
    script_name: "empty",
    class_name: "Absent",
  });
  await hosting.create("classless", "one");
  expect(await hosting.end("classless", "one")).toMatchObject({
    error: { message: 'The script exports no class "Absent" with a method run()' },
  });
});

it("a queue's consumer creates instances", async () => {
  await hosting.workflow("order", "return event.payload;");
  const queues = `/accounts/${hosting.account}/queues`;
  const queue = (await hosting.call("POST", queues, { queue_name: "orders" })).body.result as {
    queue_id: string;
  };
  await hosting.deploy("consumer", {
    code: `export default { async queue(batch, env) { for (const { body } of batch.messages) await env.ORDERS.create({ id: body.id, params: body }); } };`,
    bindings: [{ type: "workflow", name: "ORDERS", workflow_name: "order" }],
  });
  await hosting.call("POST", `${queues}/${queue.queue_id}/consumers`, {
    type: "worker",
    script_name: "consumer",
    settings: { max_wait_time_ms: 0, batch_size: 1 },
  });
  await hosting.call("POST", `${queues}/${queue.queue_id}/messages`, {
    body: { id: "queued" },
    content_type: "json",
  });
  await expect
    .poll(async () => (await hosting.call("GET", `${hosting.instances("order", "queued")}/status`)).status)
    .toBe(200);
  expect(await hosting.end("order", "queued")).toMatchObject({ output: { id: "queued" } });
});

import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";

let server: TestServer;
let account: string;
beforeAll(async () => {
  server = await startTestServer({ workflowLingerMs: 50, workflowRetryDelayMs: 10 });
  account = `/accounts/${server.ready.account_id}`;
});
afterAll(() => server.close(1000));

async function upload(name: string, code: string, bindings: unknown[] = []): Promise<void> {
  const form = new FormData();
  form.set(
    "metadata",
    JSON.stringify({ main_module: "main.js", compatibility_date: "2026-11-01", bindings }),
  );
  form.set("main.js", new File([code], "main.js", { type: "application/javascript+module" }));
  const response = await fetch(`${server.ready.api}${account}/workers/scripts/${name}`, {
    method: "PUT",
    headers: { authorization: "Bearer owner-token-for-tests" },
    body: form,
  });
  expect(response.status, await response.text()).toBe(200);
}

const ended = ["complete", "errored", "terminated"];
async function end(path: string): Promise<{ status: string; output: unknown; error: unknown }> {
  for (;;) {
    const { body } = await server.call("GET", `${path}/status`);
    if (ended.includes((body.result as { status: string }).status)) return body.result;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

it("runs an instance from its creation over the API to its output", async () => {
  await upload(
    "orders",
    `import { WorkflowEntrypoint } from "cloudflare:workers";
export class Order extends WorkflowEntrypoint {
  async run(event, step) {
    const price = await step.do("price", async () => event.payload.count * 7);
    await step.sleep("a while", 20);
    const { payload } = await step.waitForEvent("paid", { type: "payment" });
    return { price, payload, same: event.params === event.payload };
  }
}
export default {};`,
  );
  const put = await server.call("PUT", `${account}/workflows/order`, {
    script_name: "orders",
    class_name: "Order",
  });
  expect(put.body.errors).toEqual([]);
  const created = await server.call("POST", `${account}/workflows/order/instances`, {
    id: "first",
    params: { count: 6 },
  });
  expect(created.body).toMatchObject({ success: true, result: { id: "first", status: "queued" } });
  const path = `${account}/workflows/order/instances/first`;
  expect(
    (await server.call("POST", `${path}/events`, { type: "payment", payload: { by: "card" } })).status,
  ).toBe(200);
  expect(await end(path)).toEqual({
    status: "complete",
    output: { price: 42, payload: { by: "card" }, same: true },
    error: null,
  });
  const details = await server.call("GET", path);
  expect(details.body.result).toMatchObject({
    success: true,
    step_count: 1,
    steps: [
      { type: "step", name: "price-1", success: true, output: 42 },
      { type: "sleep", name: "a while-1", finished: true },
      { type: "waitForEvent", name: "paid-1", finished: true, event_type: "payment", output: { by: "card" } },
    ],
  });
});

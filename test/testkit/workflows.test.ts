import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startSelvedge, type Selvedge } from "../../src/testkit/start-selvedge.ts";
import { call, deploy } from "./helpers.ts";

let edge: Selvedge;
let startMs: number;
beforeAll(async () => {
  edge = await startSelvedge({ seed: "workflows", now: "2030-03-01T12:00:00Z", clock: "frozen" });
});
afterAll(() => edge.close());

const source = `
import { WorkflowEntrypoint } from "cloudflare:workers";
let runs = 0;
export class Orders extends WorkflowEntrypoint {
  async run(event, step) {
    const charged = await step.do("charge", { retries: { limit: 3, delay: "1 hour", backoff: "constant" } },
      async () => (await fetch("https://pay.example/charges", { method: "POST" })).text());
    await step.sleep("cool off", "10 days");
    const { payload } = await step.waitForEvent("approval", { type: "approved", timeout: "30 days" });
    await step.sleep("settle", "20 days");
    const shipped = await step.do("ship", async ({ attempt }) => "parcel " + attempt);
    return { charged, by: payload.by, shipped };
  }
}
export class Odd extends WorkflowEntrypoint {
  async run(event, step) {
    const name = "step " + runs++;
    await step.do(name, async () => 1);
    return name;
  }
}
export default { fetch: () => new Response() };`;

beforeEach(async () => {
  await edge.reset();
  startMs = (await edge.clock.now()).getTime();
  await deploy(edge, "shop", source);
  const account = `/accounts/${edge.accountId}/workflows`;
  await call(edge, "PUT", `${account}/orders`, { script_name: "shop", class_name: "Orders" });
  await call(edge, "PUT", `${account}/odd`, { script_name: "shop", class_name: "Odd" });
});

const create = async (id: string, workflow = "orders"): Promise<void> => {
  await call(edge, "POST", `/accounts/${edge.accountId}/workflows/${workflow}/instances`, {
    instance_id: id,
  });
};
const sendApproval = async (id: string): Promise<void> => {
  await call(edge, "POST", `/accounts/${edge.accountId}/workflows/orders/instances/${id}/events/approved`, {
    by: "owner",
  });
};

describe("workflows under test", () => {
  it("runs with mocks of a step, of sleeps and of an event, set before the instance exists", async () => {
    await using order = await edge.introspectWorkflowInstance("orders", "one");
    await order.modify(async (m) => {
      await m.disableSleeps();
      await m.mockStepResult({ name: "charge" }, { charged: 10 });
      await m.mockEvent({ type: "approved", payload: { by: "owner" } });
    });
    await create("one");
    expect(await order.waitForStepResult({ name: "charge" })).toEqual({ charged: 10 });
    await order.waitForStatus("complete");
    expect(await order.getOutput()).toEqual({ charged: { charged: 10 }, by: "owner", shipped: "parcel 1" });
    expect(await edge.outbound.requests()).toEqual([]);
    expect((await edge.clock.now()).getTime()).toBe(startMs);
  });

  it("errors of a step count as attempts, with the delays of its retries or without", async () => {
    await using order = await edge.introspectWorkflowInstance("orders", "one");
    await order.modify(async (m) => {
      await m.disableRetryDelays([{ name: "charge" }]);
      await m.mockStepError({ name: "charge" }, new TypeError("card declined"), 2);
    });
    await edge.outbound.on("https://pay.example/*", () => new Response("paid"));
    await create("one");
    expect(await order.waitForStepResult({ name: "charge" })).toBe("paid");
    const attempts = await order.attempts({ name: "charge" });
    expect(attempts.map(({ attempt, error }) => [attempt, error?.message])).toEqual([
      [1, "card declined"],
      [2, "card declined"],
      [3, undefined],
    ]);
    expect(await edge.outbound.requests()).toHaveLength(1);
  });

  it("the failure of an instance is reported at once to callers that wait for its success", async () => {
    await using order = await edge.introspectWorkflowInstance("orders", "one");
    await order.modify(async (m) => {
      await m.disableRetryDelays();
      await m.mockStepError({ name: "charge" }, new Error("card declined"));
    });
    await create("one");
    await expect(order.waitForStatus("complete")).rejects.toThrow(
      /is errored and will not be complete.*card declined/,
    );
    expect(await order.getError()).toEqual({ name: "Error", message: "card declined" });
    await expect(order.getOutput()).rejects.toThrow("card declined");
    expect(await order.attempts({ name: "charge" })).toHaveLength(4);
    await expect(order.waitForStepResult({ name: "ship" })).rejects.toThrow("Its steps are charge-1");
  });

  it("timeouts of steps and of events are forced", async () => {
    await using order = await edge.introspectWorkflowInstance("orders", "one");
    await order.modify(async (m) => {
      await m.disableSleeps();
      await m.disableRetryDelays();
      await m.forceStepTimeout({ name: "charge" }, 1);
      await m.forceEventTimeout({ name: "approval" });
    });
    await edge.outbound.on("https://pay.example/*", () => new Response("paid"));
    await create("one");
    expect(await order.getError()).toMatchObject({ name: "WorkflowTimeoutError" });
    const [first, second] = await order.attempts({ name: "charge" });
    expect([first!.error?.name, second!.error]).toEqual(["WorkflowTimeoutError", null]);
  });

  it("a mock that no step used fails its disposal, and names the steps", async () => {
    const order = await edge.introspectWorkflowInstance("orders", "one");
    await order.modify(async (m) => m.mockStepResult({ name: "chrage" }, 1));
    await create("one");
    await edge.outbound.on("https://pay.example/*", () => new Response("paid"));
    await edge.clock.next();
    await expect(order.dispose()).rejects.toThrow(/the mocks of "chrage-1". The steps were "charge-1"/);
  });

  it("a wait that is too long says where the instance is", async () => {
    await using order = await edge.introspectWorkflowInstance("orders", "one");
    await order.modify((m) => m.mockStepResult({ name: "charge" }, 1));
    await expect(order.waitForStatus("complete", 50)).rejects.toThrow("which does not exist");
    await create("one");
    await order.waitForStatus("waiting");
    await expect(order.waitForStatus("complete", 50)).rejects.toThrow(
      'which is waiting, at sleep "cool off-1" until 2030-03-11T12:00:0',
    );
  });

  it("changes all instances that start from now on, and finds them", async () => {
    await edge.outbound.on("https://pay.example/*", () => new Response("paid"));
    await create("before");
    await using all = await edge.introspectWorkflow("orders");
    await all.modifyAll(async (m) => {
      await m.disableSleeps();
      await m.mockEvent({ type: "approved", payload: { by: "owner" } });
    });
    await create("one");
    await create("two");
    await expect.poll(async () => (await all.get()).length).toBe(2);
    for (const each of await all.get())
      expect(await each.getOutput()).toEqual({ charged: "paid", by: "owner", shipped: "parcel 1" });
    const before = await edge.introspectWorkflowInstance("orders", "before");
    await before.waitForStatus("waiting");
  });

  it("time passes for one instance alone", async () => {
    await edge.outbound.on("https://pay.example/*", () => new Response("paid"));
    const one = await edge.introspectWorkflowInstance("orders", "one");
    const two = await edge.introspectWorkflowInstance("orders", "two");
    for (const { id } of [one, two]) {
      await create(id);
      await sendApproval(id);
    }
    await one.fastForward("29 days");
    await one.waitForStatus("waiting");
    await one.fastForward("1 day");
    await one.waitForStatus("complete");
    await two.waitForStatus("waiting");
    expect(await two.timeline()).toMatchObject([
      { name: "charge-1" },
      { name: "cool off-1", finished: false },
    ]);
    expect((await edge.clock.now()).getTime()).toBe(startMs);
    expect((await edge.clock.advance("31 days")).work.map(({ instance }) => instance)).toEqual([
      "two",
      "two",
    ]);
    await two.waitForStatus("complete");
  });

  it("a process that ends after a step repeats no step that is done", async () => {
    let charges = 0;
    await edge.outbound.on("https://pay.example/*", () => new Response(`paid ${++charges}`));
    await using order = await edge.introspectWorkflowInstance("orders", "one");
    await order.modify(async (m) => {
      await m.disableSleeps();
      await m.mockEvent({ type: "approved", payload: { by: "owner" } });
    });
    await order.crashAfter({ name: "charge" });
    await create("one");
    expect(await order.getOutput(60_000)).toEqual({ charged: "paid 1", by: "owner", shipped: "parcel 1" });
    expect(charges).toBe(1);
  });

  it("a process that is killed within a step: the step is tried again, and the instance completes", async () => {
    const asked: string[] = [];
    const { promise: reached, resolve } = Promise.withResolvers<void>();
    await edge.outbound.on("https://pay.example/*", async (request) => {
      asked.push(request.url);
      if (asked.length === 1) {
        setTimeout(resolve, 100); // an attempt of 50 ms is noted in the journal
        await new Promise(() => {});
      }
      return new Response("paid");
    });
    await using order = await edge.introspectWorkflowInstance("orders", "one");
    await order.modify(async (m) => {
      await m.disableSleeps();
      await m.mockEvent({ type: "approved", payload: { by: "owner" } });
    });
    await create("one");
    await reached;
    expect(await edge.kill({ script: "shop" })).toBe(1);
    expect(await order.getOutput(60_000)).toMatchObject({ charged: "paid" });
    expect((await order.attempts({ name: "charge" })).map(({ interrupted }) => interrupted)).toEqual([
      true,
      false,
    ]);
  });

  it("a replay reaches the same end, or says which steps the code no longer reaches", async () => {
    await edge.outbound.on("https://pay.example/*", () => new Response("paid"));
    const order = await edge.introspectWorkflowInstance("orders", "one");
    await order.modify(async (m) => {
      await m.disableSleeps();
      await m.mockEvent({ type: "approved", payload: { by: "owner" } });
    });
    await create("one");
    await order.waitForStatus("complete");
    const same = { deterministic: true, added: [], missed: [], sameEnd: true };
    expect(await order.replay()).toEqual(same);
    expect(await edge.outbound.requests()).toHaveLength(1);
    const odd = await edge.introspectWorkflowInstance("odd", "one");
    await create("one", "odd");
    await odd.waitForStatus("complete");
    expect(await odd.replay()).toMatchObject({
      deterministic: false,
      added: [/^step \d+-1$/].map((each) => expect.stringMatching(each) as string),
    });
  });

  it("names a workflow that is not there", async () => {
    await expect(edge.introspectWorkflow("oders")).rejects.toThrow('no workflow with the name "oders"');
  });
});

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startSelvedge, type Selvedge } from "../../src/testkit/start-selvedge.ts";
import { call, deployNoting, zoneWith } from "./helpers.ts";
import { hourMs, prepareMonth } from "./month.ts";

const startOn = "2030-03-01T12:00:30.000Z";
let startMs: number;
let edge: Selvedge;
beforeAll(async () => {
  edge = await startSelvedge({ seed: "time", now: startOn, clock: "frozen" });
});
afterAll(() => edge.close());
it("a frozen clock stands at the time that the test asked for", async () => {
  expect((await edge.clock.now()).toISOString()).toBe(startOn);
});
beforeEach(async () => {
  await edge.reset();
  startMs = (await edge.clock.now()).getTime();
});

const source = `
import { DurableObject, WorkflowEntrypoint } from "cloudflare:workers";
let order = 0;
const note = (env, text) => env.LOG.put(String(order++).padStart(3, "0"), text);
export default {
  scheduled: (event, env) => note(env, "cron " + new Date(event.scheduledTime).toISOString()),
  async queue(batch, env) {
    for (const message of batch.messages) {
      await note(env, "message " + message.body + " " + message.attempts);
      if (message.attempts < 3) message.retry({ delaySeconds: 600 });
    }
  },
  async fetch(request, env) {
    const { at } = await request.json();
    await env.BOX.get(env.BOX.idFromName("box")).set(at);
    return new Response("set");
  },
};
export class Box extends DurableObject {
  set(at) { return this.ctx.storage.setAlarm(at); }
  alarm() { return note(this.env, "alarm"); }
}
export class Flow extends WorkflowEntrypoint {
  async run(event, step) {
    await step.sleep("nap", "30 days");
    return step.do("try", { retries: { limit: 3, delay: "1 hour", backoff: "constant" } }, async ({ attempt }) => {
      if (attempt < 3) throw new Error("not yet");
      return attempt;
    });
  }
}
export class Quick extends WorkflowEntrypoint {
  async run(event, step) {
    await step.sleep("nap", "26 hours");
    return step.do("try", { retries: { limit: 1, delay: 100 } }, async ({ attempt }) => {
      if (attempt === 1) throw new Error("not yet");
      return attempt;
    });
  }
}`;

/** Deploys the script, and returns a function that reads its notes. */
async function deploy(): Promise<() => Promise<string[]>> {
  const account = `/accounts/${edge.accountId}`;
  const id = await deployNoting(edge, "worker", source, { name: "BOX", class_name: "Box" });
  return async () => {
    const keys = await call<{ name: string }[]>(edge, "GET", `${account}/storage/kv/namespaces/${id}/keys`);
    const url = `${edge.urls.api}${account}/storage/kv/namespaces/${id}/values/`;
    const headers = { authorization: `Bearer ${edge.token}` };
    return Promise.all(keys.map(async ({ name }) => (await fetch(url + name, { headers })).text()));
  };
}

const minutesOn = (minutes: number): string =>
  new Date(Date.parse("2030-03-01T12:00:00Z") + minutes * 60_000).toISOString();

describe("work that comes due while the clock moves", () => {
  it("schedules run in order, each at its minute", async () => {
    const notes = await deploy();
    await call(edge, "PUT", `/accounts/${edge.accountId}/workers/scripts/worker/schedules`, [
      { cron: "*/5 * * * *" },
    ]);
    const { work } = await edge.clock.advance("1 hour");
    const times = Array.from({ length: 12 }, (_, index) => minutesOn(5 * (index + 1)));
    expect(work).toEqual(
      times.map((at) => ({
        kind: "schedules",
        at,
        script: "worker",
        cron: "*/5 * * * *",
        scheduledTime: at,
      })),
    );
    expect(await notes()).toEqual(times.map((at) => `cron ${at}`));
  });

  it("messages are delivered after their delay, and again after that of a retry", async () => {
    const notes = await deploy();
    const account = `/accounts/${edge.accountId}`;
    const { queue_id } = await call<{ queue_id: string }>(edge, "POST", `${account}/queues`, {
      queue_name: "jobs",
    });
    const settings = { max_wait_time_ms: 0, max_retries: 5 };
    const consumer = { type: "worker", script_name: "worker", settings };
    await call(edge, "POST", `${account}/queues/${queue_id}/consumers`, consumer);
    await call(edge, "POST", `${account}/queues/${queue_id}/messages`, { body: "one", delay_seconds: 3600 });
    expect((await edge.clock.advance("59 minutes")).work).toEqual([]);
    const { work } = await edge.clock.advance("1 hour");
    const at = (minutes: number): object => ({
      kind: "queues",
      queue: "jobs",
      at: new Date(startMs + minutes * 60_000).toISOString(),
    });
    expect(work).toMatchObject([at(60), at(70), at(80)]);
    expect(await notes()).toEqual(["message one 1", "message one 2", "message one 3"]);
  });

  it("an alarm of an object rings at its time, and not after a reset", async () => {
    const notes = await deploy();
    const account = `/accounts/${edge.accountId}`;
    const zone = await call<{ id: string }>(edge, "POST", "/zones", {
      account: { id: edge.accountId },
      name: "shop.example",
      type: "full",
    });
    const domain = { hostname: "www.shop.example", service: "worker", zone_id: zone.id };
    await call(edge, "PUT", `${account}/workers/domains`, domain);
    const at = "2030-03-03T00:00:00.000Z";
    const set = await edge.fetch("http://www.shop.example/", {
      method: "POST",
      body: JSON.stringify({ at: Date.parse(at) }),
    });
    expect([set.status, await set.text()]).toEqual([200, "set"]);
    await edge.snapshot("set");
    const { work } = await edge.clock.advance("7 days");
    expect(work).toMatchObject([{ kind: "objects", at, class: "Box" }]);
    expect(await notes()).toEqual(["alarm"]);
    await edge.reset();
    expect((await edge.clock.advance("7 days")).work).toEqual([]);
  });

  it("a workflow ends its sleep and its retries at their times", async () => {
    await deploy();
    const flow = `/accounts/${edge.accountId}/workflows/flow`;
    await call(edge, "PUT", flow, { script_name: "worker", class_name: "Flow" });
    await call(edge, "POST", `${flow}/instances`, { instance_id: "one" });
    const { work } = await edge.clock.advance("31 days");
    const day30 = startMs + 30 * 86_400_000;
    const at = (hours: number): object => ({
      kind: "workflows",
      instance: "one",
      at: new Date(day30 + hours * 3_600_000).toISOString(),
    });
    expect(work).toEqual([at(0), at(1), at(2)]);
    expect(await call(edge, "GET", `${flow}/instances/one`)).toMatchObject({ status: "complete", output: 3 });
  });

  it("a month passes in order, and each thing comes at its time", async () => {
    const month = await prepareMonth(edge, "0 */8 * * *");
    await edge.snapshot("month");
    const { work, to, expired } = await edge.clock.advance("30 days");
    expect(expired).toEqual({ kv: 1, tokens: 1 });
    expect(to.getTime()).toBe(month.startMs + 30 * 24 * hourMs);
    await month.check(work, 90);
    const state = await edge.state();
    expect(state).not.toHaveProperty("object_alarms");
    await edge.restore("month");
    const parts = [];
    for (let i = 0; i < 3; i++) parts.push(...(await edge.clock.advance("10 days")).work);
    expect(parts).toEqual(work);
    expect(await edge.state()).toEqual(state);
  });

  it("in real time, work that is due shortly after a movement is on time", async () => {
    const notes = await deploy();
    const account = `/accounts/${edge.accountId}`;
    const { queue_id } = await call<{ queue_id: string }>(edge, "POST", `${account}/queues`, {
      queue_name: "jobs",
    });
    const consumer = { type: "worker", script_name: "worker", settings: { max_wait_time_ms: 0 } };
    await call(edge, "POST", `${account}/queues/${queue_id}/consumers`, consumer);
    const flow = `${account}/workflows/quick`;
    await call(edge, "PUT", flow, { script_name: "worker", class_name: "Quick" });
    await call(edge, "POST", `${flow}/instances`, { instance_id: "one" });
    await edge.clock.run();
    await edge.clock.advance("25 hours");
    await call(edge, "POST", `${account}/queues/${queue_id}/messages`, { body: "one", delay_seconds: 3601 });
    await edge.clock.advance("1 hour");
    const status = async (): Promise<string> =>
      (await call<{ status: string }>(edge, "GET", `${flow}/instances/one`)).status;
    await expect.poll(status).toBe("complete");
    await expect.poll(notes).toEqual(["message one 1"]);
  });

  it("a new zone is active from the next call on, while the clock stands", async () => {
    const id = await zoneWith(edge, { type: "A", name: "www", content: "192.0.2.1" });
    await edge.snapshot("new");
    await edge.restore("new");
    expect(await call(edge, "GET", `/zones/${id}`)).toMatchObject({ status: "active" });
  });

  it.each([
    ["advance", 1e300],
    ["advance", "74 years"],
    ["set", "2101-01-01"],
    ["set", "1999-12-31"],
  ] as const)(
    "a time that no platform can have is refused, and the clock stands: %s %s",
    async (how, time) => {
      await expect(edge.clock[how](time as never)).rejects.toThrow("Expected a time from 2000-01-01");
      expect((await edge.clock.now()).getTime()).toBe(startMs);
      expect(await call(edge, "GET", "/zones")).toEqual([]);
    },
  );

  it("a reset ends a movement of the clock, and has the time of the start", async () => {
    const notes = await deploy();
    const schedules = `/accounts/${edge.accountId}/workers/scripts/worker/schedules`;
    await call(edge, "PUT", schedules, [{ cron: "* * * * *" }]);
    const moving = expect(edge.clock.advance("3 days")).rejects.toThrow("restored while the clock moved");
    await expect.poll(notes).not.toEqual([]);
    await Promise.all([edge.reset(), edge.snapshot("new"), edge.reset(), moving]);
    expect((await edge.clock.now()).getTime()).toBe(startMs);
    expect((await edge.clock.advance("1 hour")).work).toEqual([]);
  });

  it("more work than the limit is refused before any of it runs", async () => {
    const notes = await deploy();
    await call(edge, "PUT", `/accounts/${edge.accountId}/workers/scripts/worker/schedules`, [
      { cron: "* * * * *" },
    ]);
    await expect(edge.clock.advance("1 hour", { max: 10 })).rejects.toThrow("More than 10 pieces of work");
    await expect(edge.clock.advance("10 years")).rejects.toThrow("schedules have 5256000 runs");
    expect(await notes()).toEqual([]);
    expect((await edge.clock.now()).getTime()).toBe(startMs);
  });

  it("skip goes on to what is due next whenever nothing runs", async () => {
    await deploy();
    await edge.clock.skip();
    const flow = `/accounts/${edge.accountId}/workflows/flow`;
    await call(edge, "PUT", flow, { script_name: "worker", class_name: "Flow" });
    await call(edge, "POST", `${flow}/instances`, { instance_id: "one" });
    const status = async (): Promise<string> =>
      (await call<{ status: string }>(edge, "GET", `${flow}/instances/one`)).status;
    await expect.poll(status).toBe("complete");
    const endMs = startMs + 30 * 86_400_000 + 2 * 3_600_000;
    expect((await edge.clock.now()).getTime()).toBe(endMs);

    await edge.snapshot("skipping");
    await call(edge, "POST", `${flow}/instances`, { instance_id: "two" });
    await expect.poll(async () => edge.clock.now()).toEqual(new Date(2 * endMs - startMs));
    await edge.restore("skipping"); // and goes on to skip
    await call(edge, "POST", `${flow}/instances`, { instance_id: "two" });
    await expect.poll(async () => edge.clock.now()).toEqual(new Date(2 * endMs - startMs));
  });
});

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startSelvedge, type Selvedge } from "../../src/testkit/start-selvedge.ts";
import { call } from "./helpers.ts";

const startOn = "2030-03-01T12:00:30.000Z";
let startMs: number;
let edge: Selvedge;
beforeAll(async () => {
  edge = await startSelvedge({ seed: "time", now: startOn, clock: "frozen" });
});
afterAll(() => edge.close());
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
}`;

/** Deploys the script, and returns a function that reads its notes. */
async function deploy(): Promise<() => Promise<string[]>> {
  const account = `/accounts/${edge.accountId}`;
  const { id } = await call<{ id: string }>(edge, "POST", `${account}/storage/kv/namespaces`, {
    title: "log",
  });
  const form = new FormData();
  const metadata = {
    main_module: "main.js",
    compatibility_date: "2026-01-01",
    bindings: [
      { type: "kv_namespace", name: "LOG", namespace_id: id },
      { type: "durable_object_namespace", name: "BOX", class_name: "Box" },
    ],
    migrations: { new_tag: "v1", new_sqlite_classes: ["Box"] },
  };
  form.set("metadata", JSON.stringify(metadata));
  form.set("main.js", new File([source], "main.js", { type: "application/javascript+module" }));
  await call(edge, "PUT", `${account}/workers/scripts/worker`, form);
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

  it("more work than the limit is refused", async () => {
    await deploy();
    await call(edge, "PUT", `/accounts/${edge.accountId}/workers/scripts/worker/schedules`, [
      { cron: "* * * * *" },
    ]);
    await expect(edge.clock.advance("1 hour", { max: 10 })).rejects.toThrow("More than 10 pieces of work");
  });

  it("skip goes on to what is due next whenever nothing runs", async () => {
    await deploy();
    await edge.clock.skip();
    const flow = `/accounts/${edge.accountId}/workflows/flow`;
    await call(edge, "PUT", flow, { script_name: "worker", class_name: "Flow" });
    await call(edge, "POST", `${flow}/instances`, { instance_id: "one" });
    const status = async (): Promise<string> =>
      (await call<{ status: string }>(edge, "GET", `${flow}/instances/one`)).status;
    await expect.poll(status, { timeout: 10_000 }).toBe("complete");
    expect((await edge.clock.now()).getTime()).toBe(startMs + 30 * 86_400_000 + 2 * 3_600_000);
  });
});

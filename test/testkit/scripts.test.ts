import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { startSelvedge, type Selvedge } from "../../src/testkit/start-selvedge.ts";
import { call, deploy } from "./helpers.ts";

let edge: Selvedge;
beforeAll(async () => {
  edge = await startSelvedge({ seed: "scripts", now: "2030-03-01T12:00:00Z", clock: "frozen" });
});
afterAll(() => edge.close());
const source = `
let last;
export default {
  async fetch(request) {
    if (request.url.endsWith("/last")) return Response.json(last);
    if (request.url.endsWith("/throw")) throw new RangeError("no such page");
    const headers = { "x-token": request.headers.get("authorization"), "content-type": "text/plain" };
    return new Response([request.method, request.url, await request.text()].join(" "), { status: 418, headers });
  },
  scheduled({ cron, scheduledTime }) {
    if (cron === "0 0 1 1 *") throw new Error("not on holidays");
    last = [cron, new Date(scheduledTime).toISOString()];
  },
  queue(batch) {
    for (const message of batch.messages) {
      if (message.body.is === "bad") message.retry({ delaySeconds: 60 });
      else if (message.body.is === "worse") throw new Error("cannot be read");
      else message.ack();
    }
    last = [batch.queue, batch.messages.map(({ id, attempts, timestamp, body }) => [id, attempts, timestamp.toISOString(), body])];
  },
};`;
beforeEach(async () => {
  await edge.reset();
  await deploy(edge, "driven", source);
});

it("a request reaches a script without a host, with its method, headers and body", async () => {
  const answer = await edge.fetchScript("driven", "https://any.example/path?q=1", {
    method: "PATCH",
    headers: { authorization: "Bearer mine" },
    body: "hello",
  });
  expect([answer.status, await answer.text(), answer.headers.get("x-token")]).toEqual([
    418,
    "PATCH https://any.example/path?q=1 hello",
    "Bearer mine",
  ]);
  const read = await edge.script("driven").fetch("http://any.example/");
  expect(await read.text()).toBe("GET http://any.example/ ");
});

it("the script of a customer runs by the name of its namespace", async () => {
  const dispatch = `/accounts/${edge.accountId}/workers/dispatch/namespaces`;
  await call(edge, "POST", dispatch, { name: "customers" });
  const form = new FormData();
  const metadata = { main_module: "main.js", compatibility_date: "2026-01-01" };
  form.set("metadata", JSON.stringify(metadata));
  const type = "application/javascript+module";
  form.set("main.js", new File([source.replace("418", "419")], "main.js", { type }));
  await call(edge, "PUT", `${dispatch}/customers/scripts/driven`, form);
  const driven = edge.script("driven", { namespace: "customers" });
  expect((await driven.fetch("http://any.example/")).status).toBe(419);
  expect((await driven.scheduled({ cron: "0 3 * * *" })).outcome).toBe("ok");
  const absent = edge.script("driven", { namespace: "customer" });
  await expect(absent.fetch("http://any.example/")).rejects.toThrow(
    'no dispatch namespace with the name "customer"',
  );
});

it("an exception of the script is reported, and so is a missing script", async () => {
  await expect(edge.fetchScript("driven", "http://any.example/throw")).rejects.toThrow("no such page");
  await expect(edge.fetchScript("drivn", "http://any.example/")).rejects.toThrow(
    'no deployed script with the name "drivn"',
  );
});

it("the handler of schedules runs, with its time or that of the clock", async () => {
  const last = async (): Promise<unknown> =>
    (await edge.fetchScript("driven", "http://any.example/last")).json();
  expect(await edge.runScheduled("driven", { cron: "*/5 * * * *" })).toEqual({
    outcome: "ok",
    noRetry: false,
  });
  expect(await last()).toEqual(["*/5 * * * *", (await edge.clock.now()).toISOString()]);
  const scheduledTime = new Date("2031-01-01T00:00:00Z");
  await edge.runScheduled("driven", { cron: "1 2 3 4 5", scheduledTime });
  expect(await last()).toEqual(["1 2 3 4 5", "2031-01-01T00:00:00.000Z"]);
  expect(await edge.runScheduled("driven", { cron: "0 0 1 1 *" })).toEqual({
    outcome: "exception",
    error: { name: "Error", message: "not on holidays" },
  });
});

it("the handler of queues gets a batch, and answers for each message", async () => {
  const timestamp = new Date("2030-02-01T00:00:00Z");
  const outcome = await edge.sendQueueBatch("driven", "jobs", [
    { id: "a", body: { is: "good" }, timestamp, attempts: 3 },
    { id: "b", body: { is: "bad" } },
  ]);
  expect(outcome).toMatchObject({
    outcome: "ok",
    explicitAcks: ["a"],
    retryMessages: [{ msgId: "b", delaySeconds: 60 }],
    ackAll: false,
  });
  const last = (await (await edge.fetchScript("driven", "http://any.example/last")).json()) as unknown[];
  expect(last).toMatchObject([
    "jobs",
    [
      ["a", 3, timestamp.toISOString(), { is: "good" }],
      ["b", 1, expect.any(String), { is: "bad" }],
    ],
  ]);
  expect(await edge.sendQueueBatch("driven", "jobs", [{ body: { is: "worse" } }])).toMatchObject({
    outcome: "exception",
    error: { message: "cannot be read" },
  });
});

it("shows the runs of a script that begin after it is watched", async () => {
  await edge.fetchScript("driven", "http://any.example/");
  await using logs = await edge.script("talker").logs();
  await deploy(
    edge,
    "talker",
    `export default {
      fetch(request) { console.warn("asked", { for: new URL(request.url).pathname }); return new Response("ok"); },
      scheduled() { throw new RangeError("too late"); },
    };`,
  );
  await edge.fetchScript("driven", "http://any.example/");
  await edge.fetchScript("talker", "http://any.example/bread");
  await edge.runScheduled("talker", { cron: "0 3 * * *" });
  const runs = await logs.runs(2);
  expect(runs).toMatchObject([
    { outcome: "ok", logs: [{ level: "warn", message: ["asked", { for: "/bread" }] }], exceptions: [] },
    {
      outcome: "exception",
      event: { cron: "0 3 * * *" },
      exceptions: [{ name: "RangeError", message: "too late" }],
    },
  ]);
  await expect(logs.runs(3, 50)).rejects.toThrow("Expected 3 runs of talker within 50 ms, and there were 2");
});

it("a reset forgets the usage of customers, whose scripts get the same ids again", async () => {
  const namespaces = `/accounts/${edge.accountId}/workers/dispatch/namespaces`;
  const usage = `/accounts/${edge.accountId}/edge/dispatch/namespaces/shops/usage`;
  const make = async (): Promise<void> => {
    await call(edge, "POST", namespaces, { name: "shops" });
    const form = new FormData();
    form.set("metadata", JSON.stringify({ main_module: "main.js", compatibility_date: "2026-01-01" }));
    const code = `export default { fetch: () => new Response("hello") };`;
    form.set("main.js", new File([code], "main.js", { type: "application/javascript+module" }));
    await call(edge, "PUT", `${namespaces}/shops/scripts/anna`, form);
    const dispatcher = `export default { fetch: (request, env) => env.SHOPS.get("anna").fetch(request) };`;
    const bindings = [{ type: "dispatch_namespace", name: "SHOPS", namespace: "shops" }];
    await deploy(edge, "dispatcher", dispatcher, undefined, { bindings });
  };
  await make();
  await edge.fetchScript("dispatcher", "http://any.example/");
  expect(await call(edge, "GET", usage)).toMatchObject([{ script_name: "anna", requests: 1 }]);
  await edge.fetchScript("dispatcher", "http://any.example/");
  await edge.reset();
  await make();
  expect(await call(edge, "GET", usage)).toEqual([]);
});

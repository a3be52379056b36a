import { once } from "node:events";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/** Tails show runs: through the edge, real cells and a real WebSocket. */
let server: Hosting;
const open: WebSocket[] = [];

const code = `
export default {
  async fetch(request, env, ctx) {
    const { pathname } = new URL(request.url);
    if (pathname === "/throw") { console.log("before"); throw new RangeError("too far"); }
    if (pathname === "/later") ctx.waitUntil(scheduler.wait(20).then(() => console.log("later")));
    if (pathname === "/late-throw") ctx.waitUntil(Promise.reject(new Error("left behind")));
    if (pathname === "/loop") for (;;);
    if (pathname === "/fill") for (const all = []; ; ) all.push(new Uint8Array(1e6).fill(1));
    if (pathname === "/much") for (let i = 0; i < 1000; i++) console.log("x".repeat(1000));
    console.log("hello", { a: [1, undefined] }, undefined, 5n, new Error("shown"));
    console.warn(null, true);
    return new Response(pathname, { status: 201 });
  },
  async scheduled(controller) { console.log(controller.cron); },
  async queue(batch) { this.fail(batch.queue); },
  fail(queue) { throw new TypeError("not from " + queue); },
};`;

beforeAll(async () => {
  server = await startHosting({ scriptCpuMs: 1000, scriptMemoryMegabytes: 32 });
  await server.deploy("watched", code);
  await server.call("POST", `/accounts/${server.account}/workers/dispatch/namespaces`, { name: "customers" });
  await server.deployCustomer("customers", "customer", code);
  await server.deploy("dispatcher", {
    code: `export default { fetch: (request, env) => env.NS.get("customer").fetch(request) };`,
    bindings: [{ type: "dispatch_namespace", name: "NS", namespace: "customers" }],
  });
});
afterEach(() => {
  for (const socket of open.splice(0)) socket.terminate();
});
afterAll(() => server.close(1000));

interface Seen {
  outcome: string;
  scriptName: string;
  dispatchNamespace?: string;
  event: { request?: { url: string; method: string; headers: Record<string, string>; cf?: object } };
  logs: { level: string; message: unknown[] }[];
  exceptions: { name: string; message: string; stack?: string }[];
  truncated: boolean;
}
const scripts = "workers/scripts";

async function watch(
  where: string,
  filters: object[] = [],
): Promise<{ seen: Seen[]; id: string; socket: WebSocket; next: () => Promise<Seen> }> {
  const made = await server.call(
    "POST",
    `/accounts/${server.account}/${where}/tails`,
    JSON.stringify({ filters }),
    { "content-type": "text/plain" },
  );
  expect(made.body.errors).toEqual([]);
  const { id, url } = made.body.result as { id: string; url: string };
  const socket = new WebSocket(url, "trace-v1");
  open.push(socket);
  const seen: Seen[] = [];
  socket.on("message", (data: Buffer) => seen.push(JSON.parse(data.toString()) as Seen));
  await once(socket, "open");
  // Unmasked, as the command line tool sends it.
  socket.send(JSON.stringify({ debug: false }), { mask: false });
  let nextIndex = 0;
  const next = async (): Promise<Seen> => {
    await vi.waitFor(() => expect(seen.length).toBeGreaterThan(nextIndex), { interval: 10 });
    return seen[nextIndex++]!;
  };
  return { seen, id, socket, next };
}

it("shows requests with their logs", async () => {
  const { next } = await watch(`${scripts}/watched`);
  const answer = await server.ask("watched", "/path?q=1", {
    headers: { authorization: "Bearer x", "x-own": "mine" },
  });
  expect([answer.status, answer.body]).toEqual([201, "/path"]);
  const { logs, ...event } = await next();
  expect(event).toMatchObject({
    outcome: "ok",
    scriptName: "watched",
    exceptions: [],
    truncated: false,
    event: {
      request: {
        url: `http://${server.hostOf("watched")}/path?q=1`,
        method: "GET",
        headers: { authorization: "REDACTED", "x-own": "mine", "cf-connecting-ip": expect.any(String) },
        cf: expect.any(Object),
      },
      response: { status: 201 },
    },
  });
  expect(JSON.stringify(event)).not.toMatch(/x-selvedge|Bearer/);
  expect(logs).toMatchObject([
    {
      level: "log",
      message: ["hello", { a: [1, null] }, "undefined", "5", expect.stringMatching(/^Error: shown\n/)],
    },
    { level: "warn", message: [null, true] },
  ]);
});

it("shows exceptions before and after the answer, and logs after the answer", async () => {
  const { next } = await watch(`${scripts}/watched`);
  await server.ask("watched", "/throw");
  expect(await next()).toMatchObject({
    outcome: "exception",
    logs: [{ message: ["before"] }],
    exceptions: [
      {
        name: "RangeError",
        message: "too far",
        stack: "RangeError: too far\n    at Object.fetch (index.js:5:63)",
      },
    ],
  });
  await server.ask("watched", "/later");
  const { logs } = await next();
  expect(logs.at(-1)).toMatchObject({ message: ["later"] });
  await server.ask("watched", "/late-throw");
  expect(await next()).toMatchObject({
    outcome: "exception",
    exceptions: [
      {
        message: "left behind",
        stack: expect.stringMatching(/^Error: left behind\n {4}at Object\.fetch \(index\.js:7:\d+\)$/),
      },
    ],
  });
});

it("shows when a limit ended a run, and says so where a run logged too much", async () => {
  const { next } = await watch(`${scripts}/watched`);
  await server.ask("watched", "/much");
  expect(await next()).toMatchObject({ outcome: "ok", truncated: true });
  await server.ask("watched", "/loop");
  expect(await next()).toMatchObject({
    outcome: "exceededCpu",
    exceptions: [{ message: "Worker exceeded CPU time limit." }],
  });
  await server.ask("watched", "/fill");
  expect(await next()).toMatchObject({
    outcome: "exceededMemory",
    exceptions: [{ message: "Worker exceeded memory limit." }],
  });
});

it("a slow watcher learns how many events were dropped, and takes no memory", async () => {
  const { seen, socket } = await watch(`${scripts}/watched`);
  socket.pause();
  let runs = 0;
  for (; runs < 100; runs++) await server.ask("watched", "/much");
  const notices = (type: string) =>
    seen.flatMap(({ event }) =>
      "type" in event && event.type === type ? [String(event["message" as never])] : [],
    );
  socket.resume();
  const delivered = (): number => seen.filter(({ event }) => event.request !== undefined).length;
  const leftOut = (): number =>
    notices("overload-stop").reduce((sum, message) => sum + Number(/^\d+/.exec(message)![0]), 0);
  // Late large events may fill the buffer again. The next event that fits comes with the number of dropped
  // ones.
  await vi.waitFor(
    async () => {
      await server.ask("watched", "/");
      runs += 1;
      await vi.waitFor(() => expect(delivered() + leftOut()).toBe(runs), 500);
    },
    { interval: 0 },
  );
  expect(leftOut()).toBeGreaterThan(0);
  expect(notices("overload").length).toBe(notices("overload-stop").length);
});

it("shows other events", async () => {
  const { next } = await watch(`${scripts}/watched`);
  const live = server.services.scripts.live({ accountId: server.account }, "watched")!;
  const event = { cron: "* * * * *", scheduledTime: 60_000 };
  await server.services.runtime.invoke(
    { accountId: server.account },
    live,
    "scheduled",
    JSON.stringify(event),
  );
  expect(await next()).toMatchObject({ outcome: "ok", event, logs: [{ message: ["* * * * *"] }] });

  const { account } = server;
  const made = await server.call("POST", `/accounts/${account}/queues`, { queue_name: "watched" });
  const queue = `/accounts/${account}/queues/${made.body.result.queue_id}`;
  const settings = { max_wait_time_ms: 0, max_retries: 0 };
  await server.call("POST", `${queue}/consumers`, { type: "worker", script_name: "watched", settings });
  await server.call("POST", `${queue}/messages`, { body: "x" });
  expect(await next()).toMatchObject({
    outcome: "exception",
    event: { queue: "watched", batchSize: 1 },
    exceptions: [{ name: "TypeError", message: "not from watched" }],
  });
});

it("a customer's script is watched apart from its dispatcher; an account sees both", async () => {
  const customer = await watch("workers/dispatch/namespaces/customers/scripts/customer");
  const dispatcher = await watch(`${scripts}/dispatcher`);
  const all = await watch("workers");
  await server.ask("dispatcher", "/through");
  expect(await customer.next()).toMatchObject({ scriptName: "customer", dispatchNamespace: "customers" });
  expect(await dispatcher.next()).toMatchObject({ scriptName: "dispatcher", logs: [] });
  const names = [(await all.next()).scriptName, (await all.next()).scriptName];
  expect(names.toSorted()).toEqual(["customer", "dispatcher"]);
  expect([customer.seen.length, dispatcher.seen.length]).toEqual([1, 1]);
});

it.each<[object, string]>([
  [{ method: ["POST"] }, "method"],
  [{ header: { key: "X-Wanted", query: "ye" } }, "header"],
  [{ client_ip: ["203.0.113.9"] }, "client_ip"],
  [{ outcome: ["exception"] }, "outcome"],
  [{ query: "later" }, "query"],
  [{ scriptVersion: "another" }, "scriptVersion"],
  [{ sampling_rate: 0.000001 }, "sampling_rate"],
])("filters by %j", async (filter) => {
  const filtered = await watch(`${scripts}/watched`, [filter]);
  const all = await watch(`${scripts}/watched`);
  await server.ask("watched", "/");
  await all.next();
  expect(filtered.seen).toEqual([]);
  if ("header" in filter) await server.ask("watched", "/", { headers: { "x-wanted": "yes" } });
  else if ("outcome" in filter) await server.ask("watched", "/throw");
  else if ("query" in filter) await server.ask("watched", "/later");
  else return;
  await filtered.next();
});

it("the caller's own address counts as self", async () => {
  const { next } = await watch(`${scripts}/watched`, [{ client_ip: ["self"] }]);
  await server.ask("watched", "/");
  await next();
});

it.each([`${scripts}/watched`, "workers/dispatch/namespaces/customers/scripts/customer", "workers"])(
  "a tail of %s ends on deletion",
  async (where) => {
    const { socket, id } = await watch(where);
    const closed = once(socket, "close");
    const deleted = await server.call("DELETE", `/accounts/${server.account}/${where}/tails/${id}`);
    expect(deleted.status).toBe(200);
    expect((await closed)[0]).toBe(1000);
  },
);

it("ends when the last watcher has left", async () => {
  const path = `/accounts/${server.account}/${scripts}/watched/tails`;
  const { socket, id } = await watch(`${scripts}/watched`);
  socket.close();
  await vi.waitFor(async () => expect((await server.call("GET", path)).body.result).toEqual([]));
  expect((await server.call("DELETE", `${path}/${id}`)).status).toBe(404);
  expect(server.services.tails.isWatched({ accountId: "", scriptId: "" })).toBe(false);
});

it("does not keep the platform from closing", async () => {
  const other = await startHosting();
  const { body } = await other.call("POST", `/accounts/${other.account}/workers/tails`, {});
  const socket = new WebSocket(String(body.result.url), "trace-v1");
  await once(socket, "open");
  const closed = once(socket, "close");
  await other.close(10_000);
  expect((await closed)[0]).toBe(1000);
});

it("refuses unknown filters, and connections with unknown ids", async () => {
  const path = `/accounts/${server.account}/${scripts}/watched/tails`;
  const refused = await server.call("POST", path, { filters: [{ colour: "red" }] });
  expect(refused.body.errors[0]).toMatchObject({ message: expect.stringContaining("colour") });
  const made = await server.call("POST", path, {});
  const { url } = made.body.result as { url: string };
  for (const [address, protocol] of [
    [url.replace(/.{3}$/, "abc"), "trace-v1"],
    [url, "other"],
  ] as const) {
    const socket = new WebSocket(address, protocol);
    const [error] = (await once(socket, "error")) as [Error];
    expect(error.message).toMatch(/Unexpected server response: 40[04]/);
  }
});

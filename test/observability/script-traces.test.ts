import { once } from "node:events";
import { WebSocket } from "ws";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startCollector, treeOf, type CollectedSpan, type Collector } from "../helpers/collector.ts";
import { startHosting, startOutside, type Hosting, type Outside } from "../runtime/platform.ts";

const foreign = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
let collector: Collector;
let hosting: Hosting;
let outside: Outside;
/** The `traceparent` of the requests outside, by path. */
const received = new Map<string, string | undefined>();

beforeAll(async () => {
  collector = await startCollector();
  hosting = await startHosting({
    privateNetworks: "all",
    otlpEndpoint: collector.url,
    otlpProtocol: "http/json",
  });
  outside = await startOutside((request, response) => {
    received.set(request.url!, request.headers["traceparent"] as string | undefined);
    response.end("from outside");
  });
});
afterAll(async () => {
  await outside.close();
  await hosting.close(0);
  expect(collector.refused).toEqual([]);
  collector.close();
});

/** The spans of a request to a script, once these many are there. */
async function traceOf(script: string, path: string, count: number): Promise<CollectedSpan[]> {
  const { status, body } = await hosting.ask(script, path);
  expect(status, body).toBe(200);
  const host = hosting.hostOf(script).split(":")[0];
  const edge = await collector.find(
    ({ attributes, parentSpanId }) =>
      attributes["url.path"] === path && attributes["server.address"] === host && parentSpanId === undefined,
  );
  return collector.trace(edge.traceId, count);
}

it("is one tree over a dispatcher, a customer's script, a binding and fetches", async () => {
  const kv = await hosting.createKv("traced", { a: "value" });
  await hosting.createNamespace("shop");
  await hosting.deployCustomer("shop", "store", {
    code: `export default { async fetch(request, env) {
      await env.KV.get("a");
      const seen = request.headers.get("traceparent");
      await (await fetch("${outside.url}/fetched")).text();
      await (await fetch("${outside.url}/own", { headers: { traceparent: "${foreign}" } })).text();
      return new Response(seen);
    } };`,
    bindings: [{ type: "kv_namespace", name: "KV", namespace_id: kv }],
  });
  await hosting.deploy("front", {
    code: `export default { fetch: (request, env) => env.SHOP.get("store").fetch(request) };`,
    bindings: [{ type: "dispatch_namespace", name: "SHOP", namespace: "shop" }],
  });
  // The second request would stay inside the cell if its trace were not kept.
  await traceOf("front", "/first", 6);
  const spans = await traceOf("front", "/second", 6);
  expect(treeOf(spans)).toBe(
    [
      "edge GET",
      "  script front",
      "    script store",
      "      binding kv_namespace.get",
      "      fetch GET",
      "      fetch GET",
    ].join("\n"),
  );
  const [fetched] = spans.filter(({ attributes }) => String(attributes["url.full"]).endsWith("/fetched"));
  expect(received.get("/fetched")).toBe(`00-${fetched!.traceId}-${fetched!.spanId}-01`);
  expect(received.get("/own")).toBe(foreign);
  expect(spans.find(({ name }) => name === "script store")!.attributes).toMatchObject({
    "selvedge.dispatch_namespace": "shop",
  });
});

it("continues the trace when a script fetches a host of the platform, and calls methods", async () => {
  await hosting.deploy("greeter", {
    code: `import { WorkerEntrypoint } from "cloudflare:workers";
      export default class extends WorkerEntrypoint {
        async greet(name) { await fetch("${outside.url}/greet"); return "Hello " + name; }
        fetch() { return new Response("greeter"); }
      }`,
  });
  await hosting.deploy("caller", {
    code: `export default { async fetch(request, env) {
      const fetched = await (await fetch("http://${hosting.hostOf("greeter")}/inner")).text();
      return new Response(fetched + await env.GREETER.greet("you"));
    } };`,
    bindings: [{ type: "service", name: "GREETER", service: "greeter" }],
  });
  const spans = await traceOf("caller", "/outer", 7);
  expect(treeOf(spans)).toBe(
    [
      "edge GET",
      "  script caller",
      "    fetch GET",
      "      edge GET",
      "        script greeter",
      "    script greeter",
      "      fetch GET",
    ].join("\n"),
  );
});

it("follows calls of objects, and records exceptions", async () => {
  await hosting.deploy("counter", {
    code: `import { DurableObject } from "cloudflare:workers";
      export class Counter extends DurableObject {
        async add() { await fetch("${outside.url}/add"); return 1; }
        fetch() { throw new RangeError("no"); }
      }
      export default { async fetch(request, env) {
        const stub = env.COUNTER.get(env.COUNTER.idFromName("a"));
        const one = await stub.add();
        try { await stub.fetch(request); } catch (error) { return new Response(error.message); }
      } };`,
    bindings: [{ type: "durable_object_namespace", name: "COUNTER", class_name: "Counter" }],
    metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["Counter"] } },
  });
  const spans = await traceOf("counter", "/objects", 5);
  expect(treeOf(spans)).toBe(
    ["edge GET", "  script counter", "    object counter", "      fetch GET", "    object counter"].join(
      "\n",
    ),
  );
  const failed = spans.filter(({ isError }) => isError);
  expect(failed.map(({ name, attributes }) => [name, attributes["error.type"]])).toEqual([
    ["object counter", "exception"],
  ]);
});

it("links the batch of a queue to the request that sent it", async () => {
  const account = `/accounts/${hosting.account}`;
  const { queue_id: id } = (await hosting.call("POST", `${account}/queues`, { queue_name: "jobs" })).body
    .result;
  await hosting.deploy("taker", {
    code: `export default { async queue() { await fetch("${outside.url}/processed"); } };`,
  });
  const settings = { max_wait_time_ms: 0, batch_size: 1 };
  const consumer = { type: "worker", script_name: "taker", settings };
  await hosting.call("POST", `${account}/queues/${id}/consumers`, consumer);
  await hosting.deploy("giver", {
    code: `export default { async fetch(request, env) { await env.JOBS.send("one"); return new Response("sent"); } };`,
    bindings: [{ type: "queue", name: "JOBS", queue_name: "jobs" }],
  });
  const sent = await traceOf("giver", "/send", 3);
  const sender = sent.find(({ name }) => name === "binding queue.post")!;
  const batch = await collector.find(({ name }) => name === "queue.process jobs");
  expect(batch.traceId).not.toBe(sender.traceId);
  expect(batch.links).toMatchObject([{ traceId: sender.traceId, spanId: sender.spanId }]);
  const spans = await collector.trace(batch.traceId, 3);
  expect(treeOf(spans)).toBe("queue.process jobs\n  script taker\n    fetch GET");
});

it("follows the steps of workflows", async () => {
  await hosting.deploy("orders", {
    code: `import { WorkflowEntrypoint } from "cloudflare:workers";
      export class Order extends WorkflowEntrypoint {
        async run(event, step) {
          await step.do("reserve", async () => { await fetch("${outside.url}/reserve"); return 1; });
          await step.do("pay", { retries: { limit: 1, delay: 1 } }, async () => { throw new Error("no money"); });
        }
      }
      export default { fetch: async (request, env) => new Response((await env.ORDERS.create()).id) };`,
    bindings: [{ type: "workflow", name: "ORDERS", workflow_name: "orders", class_name: "Order" }],
  });
  const account = `/accounts/${hosting.account}`;
  const put = { script_name: "orders", class_name: "Order" };
  await hosting.call("PUT", `${account}/workflows/orders`, put);
  const { body: instance } = await hosting.ask("orders", "/order");
  const run = await collector.find(({ name }) => name === "workflow orders");
  expect(run.attributes).toMatchObject({ "selvedge.workflow_instance": instance });
  const creator = await collector.find(({ name }) => name === "binding workflow.post");
  expect(run.traceId).not.toBe(creator.traceId);
  expect(run.links).toMatchObject([{ traceId: creator.traceId, spanId: creator.spanId }]);
  const spans = await collector.trace(run.traceId, 5);
  expect(treeOf(spans).split("\n").toSorted()).toEqual([
    "  fetch GET",
    "  step pay-1",
    "  step pay-1",
    "  step reserve-1",
    "workflow orders",
  ]);
  const steps = spans.filter(({ name }) => name.startsWith("step"));
  expect(steps.map(({ name, isError }) => `${name} ${isError}`).toSorted()).toEqual([
    "step pay-1 true",
    "step pay-1 true",
    "step reserve-1 false",
  ]);
  const [fetched, reserve] = ["fetch GET", "step reserve-1"].map((name) =>
    spans.find((each) => each.name === name)!,
  );
  expect(reserve!.startNs <= fetched!.startNs).toBe(true);
});

it("follows alarms, and the requests of other events of objects", async () => {
  await hosting.deploy("waker", {
    code: `import { DurableObject } from "cloudflare:workers";
      export class Waker extends DurableObject {
        async wake() { await this.ctx.storage.setAlarm(Date.now()); }
        async alarm() { await fetch("${outside.url}/alarm"); }
        fetch() {
          const [client, server] = Object.values(new WebSocketPair());
          this.ctx.acceptWebSocket(server);
          return new Response(null, { status: 101, webSocket: client });
        }
        async webSocketMessage(socket, text) { socket.send(await (await fetch("${outside.url}/" + text)).text()); }
      }
      export default { async fetch(request, env) {
        const stub = env.WAKER.get(env.WAKER.idFromName("a"));
        if (request.headers.get("upgrade") !== null) return stub.fetch(request);
        await stub.wake();
        return new Response("ok");
      } };`,
    bindings: [{ type: "durable_object_namespace", name: "WAKER", class_name: "Waker" }],
    metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["Waker"] } },
  });
  await hosting.ask("waker", "/wake");
  const alarm = await collector.find(({ name }) => name === "alarm waker");
  expect(treeOf(await collector.trace(alarm.traceId, 2))).toBe("alarm waker\n  fetch GET");
  expect(alarm.attributes).toMatchObject({ "selvedge.script": "waker" });

  const socket = new WebSocket(hosting.ready.edge.replace("http", "ws"), {
    headers: { host: hosting.hostOf("waker") },
  });
  await once(socket, "open");
  socket.send("message");
  expect(String((await once(socket, "message"))[0])).toBe("from outside");
  socket.close();
  const event = await collector.find(({ name }) => name === "object event waker");
  expect(treeOf(await collector.trace(event.traceId, 2))).toBe("object event waker\n  fetch GET");
});

import { once } from "node:events";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/** Live logs of a script show the runs of its objects. */
const code = `import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject {
  async fetch(request) {
    if (request.headers.get("upgrade") === "websocket") {
      const [client, server] = Object.values(new WebSocketPair());
      this.ctx.acceptWebSocket(server);
      return new Response(null, { status: 101, webSocket: client });
    }
    console.log("fetched", new URL(request.url).pathname);
    if (request.url.endsWith("/boom")) throw new RangeError("fetch boom");
    return new Response("ok", { status: 202 });
  }
  say(text) {
    console.warn("said", text);
    this.ctx.waitUntil(scheduler.wait(5).then(() => console.log("later")));
    return this.env.ROOMS.getByName("second").hear();
  }
  hear() { console.log("heard"); return "heard"; }
  silent() { return "silent"; }
  boom() { throw new TypeError("method boom"); }
  spin() { for (;;); }
  webSocketMessage(socket, message) {
    console.log("message", message);
    socket.send("back");
    if (message === "boom") throw new Error("message boom");
  }
}
export default { async fetch(request, env) {
  const room = env.ROOMS.getByName("first");
  const [, method, arg] = new URL(request.url).pathname.split("/");
  try {
    if (method === "fetch") return await room.fetch(request);
    return Response.json(await room[method](arg));
  } catch (error) { return new Response(error.message); }
} };`;

interface Seen {
  outcome: string;
  entrypoint?: string;
  executionModel: string;
  durableObjectId?: string;
  event: object;
  logs: { level: string; message: unknown[] }[];
  exceptions: { name: string; message: string; stack?: string }[];
}

let hosting: Hosting;
const open: WebSocket[] = [];
beforeAll(async () => {
  hosting = await startHosting({ scriptCpuMs: 1000 });
  await hosting.deploy("rooms", {
    code,
    bindings: [{ type: "durable_object_namespace", name: "ROOMS", class_name: "Room" }],
    metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["Room"] } },
  });
});
afterEach(() => {
  for (const socket of open.splice(0)) socket.terminate();
});
afterAll(async () => hosting?.close(0));

/** Watches the script. The function returns what was seen of objects, when it is as many runs. */
async function watch(): Promise<(count: number) => Promise<Seen[]>> {
  const path = `/accounts/${hosting.account}/workers/scripts/rooms/tails`;
  const made = await hosting.call("POST", path, "{}");
  const socket = new WebSocket((made.body.result as { url: string }).url, "trace-v1");
  open.push(socket);
  const seen: Seen[] = [];
  socket.on("message", (data: Buffer) => seen.push(JSON.parse(data.toString()) as Seen));
  await once(socket, "open");
  const ofObjects = (): Seen[] => seen.filter(({ executionModel }) => executionModel === "durableObject");
  return async (count) => {
    await vi.waitFor(() => expect(ofObjects()).toHaveLength(count), { interval: 10 });
    return ofObjects();
  };
}
const room = { entrypoint: "Room", durableObjectId: expect.stringMatching(/^[0-9a-f]{64}$/) as unknown };
const log = (level: string, ...message: unknown[]): object =>
  expect.objectContaining({ level, message }) as object;

it("shows requests and method calls of objects, also those from objects, with what they log later", async () => {
  const seen = await watch();
  expect((await hosting.ask("rooms", "/fetch/path")).status).toBe(202);
  expect((await hosting.ask("rooms", "/say/hello")).body).toBe('"heard"');
  expect((await hosting.ask("rooms", "/silent")).body).toBe('"silent"');
  const runs = await seen(4);
  const byMethod = (name: string): Seen | undefined =>
    runs.find(({ event }) => (event as { rpcMethod?: string }).rpcMethod === name);
  expect(runs.find(({ event }) => "request" in event)).toMatchObject({
    ...room,
    outcome: "ok",
    event: { request: { method: "GET" }, response: { status: 202 } },
    logs: [log("log", "fetched", "/fetch/path")],
  });
  expect(byMethod("say")).toMatchObject({
    ...room,
    outcome: "ok",
    logs: [log("warn", "said", "hello"), log("log", "later")],
  });
  expect(byMethod("hear")).toMatchObject({ ...room, outcome: "ok", logs: [log("log", "heard")] });
  expect(byMethod("silent")).toMatchObject({ ...room, outcome: "ok", logs: [] });
});

it("shows exceptions of requests and methods, and limits", async () => {
  const seen = await watch();
  await hosting.ask("rooms", "/fetch/boom");
  await hosting.ask("rooms", "/boom");
  await hosting.ask("rooms", "/spin");
  const [fetched, called, spun] = await seen(3);
  expect(fetched).toMatchObject({ outcome: "exception", logs: [log("log", "fetched", "/fetch/boom")] });
  expect(fetched!.exceptions).toEqual([
    expect.objectContaining({ name: "RangeError", message: "fetch boom" }),
  ]);
  expect(fetched!.exceptions[0]!.stack).toContain("index.js");
  expect(called).toMatchObject({ outcome: "exception", event: { rpcMethod: "boom" } });
  expect(called!.exceptions).toEqual([
    expect.objectContaining({ name: "TypeError", message: "method boom" }),
  ]);
  expect(spun).toMatchObject({ outcome: "exceededCpu", event: { rpcMethod: "spin" } });
});

it("shows messages of WebSockets that log or throw", async () => {
  const seen = await watch();
  const socket = hosting.connect("rooms", "/fetch/socket");
  open.push(socket);
  await once(socket, "open");
  socket.send("one");
  await once(socket, "message");
  socket.send("boom");
  // The request of the socket ends with it.
  const messages = await seen(2);
  expect(messages).toMatchObject([
    { ...room, outcome: "ok", event: { getWebSocketEvent: { webSocketEventType: "message" } } },
    { ...room, outcome: "exception" },
  ]);
  expect(messages[0]!.logs).toEqual([log("log", "message", "one")]);
  expect(messages[1]!.exceptions).toEqual([expect.objectContaining({ message: "message boom" })]);
});

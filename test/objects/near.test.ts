import { request } from "node:http";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/** A script that calls objects often runs in their cell, and leaves it after a fault. */
let hosting: Hosting;
beforeAll(async () => (hosting = await startHosting()));
afterAll(async () => hosting?.close(0));

const code = (version = "one"): string => `import { DurableObject } from "cloudflare:workers";
let served = 0;
const loop = () => { for (;;) served++; };
export class Room extends DurableObject {
  add() { const n = (this.ctx.storage.kv.get("n") ?? 0) + 1; this.ctx.storage.kv.put("n", n); return n; }
  n() { return this.ctx.storage.kv.get("n") ?? 0; }
  loop() { loop(); }
  held = 0;
  ended = 0;
  async hold() { this.held++; await scheduler.wait(300); }
  holds() { return this.held; }
  async holdFetch() { this.held++; await scheduler.wait(300); this.ended++; return new Response(); }
  ends() { return this.held + " " + this.ended; }
  fail() { throw Object.assign(new RangeError("no"), { detail: 7 }); }
  fetch(request) {
    if (request.url.endsWith("/hold-far")) return this.holdFetch();
    if (request.headers.get("upgrade") === null) return Response.json({ cf: request.cf?.colo, own: request.headers.get("x-own") });
    const [client, server] = Object.values(new WebSocketPair());
    server.accept();
    server.addEventListener("message", ({ data }) => server.send("object " + data));
    return new Response(null, { status: 101, webSocket: client });
  }
}
export default { async fetch(request, env, ctx) {
  const { pathname } = new URL(request.url);
  const room = env.ROOMS.getByName("room");
  if (pathname === "/version") return new Response(${JSON.stringify(version)} + " " + await room.n());
  if (pathname === "/add-loop") { await room.add(); loop(); }
  if (pathname === "/compute") for (const until = Date.now() + 1e9, from = performance.now(), n = { n: 0 }; n.n < 6e7; n.n++);
  if (pathname === "/object-loop") return new Response(await room.loop().catch((error) => error.message));
  if (pathname === "/holds") return new Response(String(await room.holds()));
  if (pathname === "/hold") await Promise.all(Array.from({ length: 32 }, () => room.hold()));
  if (pathname === "/ends") return new Response(await room.ends());
  if (pathname === "/hold-far") await Promise.all(Array.from({ length: 32 }, () => room.fetch(request.url)));
  if (pathname === "/fail") return Response.json(await room.fail().catch(({ name, message, detail }) => [name, message, detail]));
  if (pathname === "/fetch" || pathname === "/socket") return room.fetch(request);
  if (pathname === "/later") { ctx.waitUntil(scheduler.wait(300).then(() => room.add())); return new Response("soon"); }
  return new Response(String(await (pathname === "/add" ? room.add() : room.n())));
} };`;

const bindings = [{ type: "durable_object_namespace", name: "ROOMS", class_name: "Room" }];
const upload = (version?: string, more: Record<string, unknown>[] = []) => ({
  code: code(version),
  bindings: [...bindings, ...more],
  metadata: {
    limits: { cpu_ms: 300 },
    ...(version === undefined && { migrations: { new_tag: "v1", new_sqlite_classes: ["Room"] } }),
  },
});
const ask = async (script: string, path: string): Promise<string> => (await hosting.ask(script, path)).body;

/** Requests until the version may be near. */
const earn = async (script: string): Promise<void> => {
  for (let i = 0; i < 100; i++) await ask(script, "/");
};

/** The requests and method calls that the gateway sends to objects during some work. */
async function passed(work: () => Promise<unknown>): Promise<number> {
  const { events } = hosting.services.objectCells;
  const before = events.requests + events.calls;
  await work();
  return events.requests + events.calls - before;
}

it("runs a script in the cell of its objects after a hundred requests", async () => {
  await hosting.deploy("rooms", upload());
  expect(await passed(async () => ask("rooms", "/"))).toBe(1);
  const far = [await ask("rooms", "/fail"), await ask("rooms", "/fetch")];
  await earn("rooms");
  expect(await passed(async () => ask("rooms", "/add"))).toBe(0);
  expect([await ask("rooms", "/fail"), await ask("rooms", "/fetch")]).toEqual(far);
  expect(JSON.parse(far[0]!)).toEqual(["RangeError", "no", 7]);
  expect(await ask("rooms", "/")).toBe("1");
});

it("ends work after the answer where it began", async () => {
  expect(await ask("rooms", "/later")).toBe("soon");
  await expect.poll(async () => ask("rooms", "/")).toBe("2");
});

it("joins WebSockets at the gateway", async () => {
  const socket = hosting.connect("rooms", "/socket");
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  const answer = new Promise((resolve) => socket.once("message", (data: Buffer) => resolve(data.toString())));
  socket.send("hello");
  expect(await answer).toBe("object hello");
  socket.close();
});

it("serves a new version with the next request, away from the objects", async () => {
  await hosting.deploy("rooms", upload("two"));
  expect(await passed(async () => expect(await ask("rooms", "/version")).toBe("two 2"))).toBe(1);
});

it("keeps a script away that does not end, and keeps what objects have stored once", async () => {
  await hosting.deploy("loops", upload());
  await earn("loops");
  expect(await passed(async () => ask("loops", "/add"))).toBe(0);
  const looping = await hosting.ask("loops", "/add-loop");
  expect(looping.status).toBe(503);
  expect(await passed(async () => expect(await ask("loops", "/")).toBe("2"))).toBe(1);
});

it("gives the public text for an object that does not end, in requests after the first", async () => {
  await hosting.deploy("stuck", upload());
  await earn("stuck");
  // It is not repeated, because the object may have stored something.
  expect((await hosting.ask("stuck", "/object-loop")).status).toBe(503);
  expect(await ask("stuck", "/object-loop")).toBe(
    "Durable Object exceeded its CPU time limit and was reset.",
  );
  expect(await ask("stuck", "/add")).toBe("1");
});

it("ends calls of objects whose visitors have left", async () => {
  await hosting.deploy("left", upload());
  const options = { path: "/hold", headers: { host: hosting.hostOf("left") }, agent: false };
  const left = request(hosting.ready.edge, options).on("error", () => {});
  left.end();
  await expect.poll(async () => ask("left", "/holds")).toBe("32");
  left.destroy();
  await expect.poll(() => hosting.services.objectCells.counts.requests).toBe(0);
});

it("keeps a script away that computes much", async () => {
  await hosting.deploy("heavy", upload());
  await earn("heavy");
  expect(await passed(async () => ask("heavy", "/"))).toBe(0);
  for (let i = 0; i < 12; i++) await ask("heavy", "/compute");
  expect(await passed(async () => ask("heavy", "/"))).toBe(1);
});

it("keeps scripts away that dispatch, and those of customers", async () => {
  await hosting.createNamespace("shops");
  await hosting.deployCustomer("shops", "shop", `export default { fetch: () => new Response("a shop") };`);
  await hosting.deploy("dispatches", upload());
  await hosting.deploy(
    "dispatches",
    upload("one", [{ type: "dispatch_namespace", name: "SHOPS", namespace: "shops" }]),
  );
  await earn("dispatches");
  expect(await passed(async () => ask("dispatches", "/"))).toBe(1);
});

it("counts requests from other cells until they end, when visitors have left", async () => {
  const options = { path: "/hold-far", headers: { host: hosting.hostOf("dispatches") }, agent: false };
  // In all, more than may wait for an object.
  for (let all = 0, held = 16 * 32; all < 2; all++, held += 16 * 32) {
    const sent = Array.from({ length: 16 }, () => request(hosting.ready.edge, options).on("error", () => {}));
    for (const each of sent) each.end();
    await expect.poll(async () => ask("dispatches", "/ends")).toMatch(new RegExp(`^${held} `));
    for (const each of sent) each.destroy();
    await expect.poll(async () => ask("dispatches", "/ends")).toBe(`${held} ${held}`);
  }
  expect((await hosting.ask("dispatches", "/fetch")).status).toBe(200);
});

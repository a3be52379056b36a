import { afterAll, beforeAll, expect, it } from "vitest";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/** Durable Objects of a script, through the edge. */
const code = `import { DurableObject, RpcTarget } from "cloudflare:workers";
class Counter extends RpcTarget {
  #n = 0;
  inc() { return ++this.#n; }
}
export class Room extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.visits = 0;
    ctx.storage.sql.exec("create table if not exists log (text)");
  }
  async fetch(request) {
    const url = new URL(request.url);
    if (request.headers.get("upgrade") === "websocket") {
      const [client, server] = Object.values(new WebSocketPair());
      this.ctx.acceptWebSocket(server, ["tag"]);
      return new Response(null, { status: 101, webSocket: client });
    }
    if (url.pathname === "/echo") return new Response(request.body, { headers: { "x-method": request.method } });
    return Response.json({ visits: ++this.visits, id: this.ctx.id.toString(), name: this.ctx.id.name ?? null });
  }
  async webSocketMessage(socket, message) { socket.send("echo " + message + " " + await this.env.ROOMS.getByName("noted").say(message)); }
  say(text) { this.ctx.storage.sql.exec("insert into log values (?)", text); return this.read(); }
  read() { return this.ctx.storage.sql.exec("select text from log order by rowid").toArray().map(({ text }) => text); }
  counter() { return new Counter(); }
  async twice(f) { return (await f(1)) + (await f(2)); }
  stream() { return new Blob(["streamed"]).stream(); }
  get title() { return "room " + this.ctx.id.name; }
  boom() { throw Object.assign(new RangeError("too much"), { detail: 7 }); }
  async other(name) { return this.env.ROOMS.getByName(name).say("from " + this.ctx.id.name); }
}
const json = async (f) => { try { return await f(); } catch (e) { return { error: e.name + ": " + e.message, ...e }; } };
export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const [, room, what, arg] = url.pathname.split("/");
    const stub = env.ROOMS.getByName(room);
    switch (what) {
      case "fetch": return stub.fetch(request);
      case "echo": return stub.fetch("http://object/echo", { method: "POST", body: request.body });
      case "say": return Response.json(await json(() => stub.say(arg)));
      case "read": return Response.json(await json(() => stub.read()));
      case "rpc": return Response.json({
        pipelined: await stub.counter().inc(),
        kept: await (async () => { using c = await stub.counter(); await c.inc(); return c.inc(); })(),
        twice: await stub.twice((n) => n * 10),
        stream: await new Response(await stub.stream()).text(),
        title: await stub.title,
        boom: await json(() => stub.boom()),
        absent: await json(() => stub.absent()),
        own: await json(() => stub.visits),
        alarm: await json(() => stub.alarm()),
      });
      case "other": return Response.json(await json(() => stub.other(arg)));
      case "ids": {
        const id = env.ROOMS.idFromName(room);
        return Response.json({
          id: id.toString(), same: id.equals(env.ROOMS.idFromString(id.toString())),
          eu: env.ROOMS.jurisdiction("eu").idFromName(room).toString() !== id.toString(),
          unique: env.ROOMS.newUniqueId().toString().length,
          foreign: await json(() => env.ROOMS.idFromString("0".repeat(64))),
          short: await json(() => env.ROOMS.idFromString("00")),
        });
      }
    }
    return new Response("?", { status: 404 });
  },
};`;
const bindings = [{ type: "durable_object_namespace", name: "ROOMS", class_name: "Room" }];
const migrations = { new_tag: "v1", steps: [{ new_sqlite_classes: ["Room"] }] };

let hosting: Hosting;
beforeAll(async () => {
  hosting = await startHosting();
  await hosting.deploy("rooms", { code, bindings, metadata: { migrations } });
});
afterAll(async () => hosting?.close(0));

const ask = async (path: string): Promise<unknown> => {
  const { status, body } = await hosting.ask("rooms", path);
  expect(`${status} ${body}`).toMatch(/^200 /);
  return JSON.parse(body);
};

it("an object answers requests, and keeps its memory and its name", async () => {
  expect(await ask("/lobby/fetch")).toMatchObject({ visits: 1, name: "lobby" });
  expect(await ask("/lobby/fetch")).toMatchObject({ visits: 2, name: "lobby" });
  expect(await ask("/attic/fetch")).toMatchObject({ visits: 1, name: "attic" });
  const { body, headers } = await hosting.ask("rooms", "/lobby/echo", { method: "POST", body: "a body" });
  expect(body).toBe("a body");
  expect(headers["x-method"]).toBe("POST");
});

it("methods, properties, targets, functions and streams pass", async () => {
  expect(await ask("/rpc/rpc")).toEqual({
    pipelined: 1,
    kept: 2,
    twice: 30,
    stream: "streamed",
    title: "room rpc",
    boom: expect.objectContaining({ error: "RangeError: too much", detail: 7, remote: true }),
    absent: expect.objectContaining({
      error: 'TypeError: The RPC receiver does not implement the method "absent".',
    }),
    own: expect.objectContaining({
      error: 'TypeError: The RPC receiver does not implement the method "visits".',
    }),
    alarm: expect.objectContaining({
      error: 'TypeError: The RPC receiver does not implement the method "alarm".',
    }),
  });
});

it("objects call each other, and store rows", async () => {
  expect(await ask("/a/say/one")).toEqual(["one"]);
  expect(await ask("/b/other/a")).toEqual(["one", "from b"]);
  expect(await ask("/a/read")).toEqual(["one", "from b"]);
  expect(await ask("/b/read")).toEqual([]);
});

it("ids are those of workerd", async () => {
  expect(await ask("/lobby/ids")).toEqual({
    id: ((await ask("/lobby/fetch")) as { id: string }).id,
    same: true,
    eu: true,
    unique: 64,
    foreign: { error: "TypeError: Durable Object ID is not valid for this namespace." },
    short: { error: "TypeError: Invalid Durable Object ID: must be 64 hex digits" },
  });
});

it("a WebSocket passes to an object", async () => {
  const socket = hosting.connect("rooms", "/lobby/fetch");
  const answer = await new Promise((resolve, reject) => {
    socket.on("error", reject);
    socket.on("open", () => socket.send("hello"));
    socket.on("message", (data: Buffer) => resolve(data.toString()));
  });
  expect(answer).toBe("echo hello hello");
  socket.close();
});

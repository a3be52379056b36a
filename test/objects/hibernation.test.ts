import { readdirSync, readlinkSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { WebSocket } from "ws";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/** WebSockets that objects accept for hibernation, through the edge. */
let hosting: Hosting;
beforeAll(async () => {
  hosting = await startHosting();
  await hosting.deploy("rooms", upload);
});
afterAll(async () => hosting?.close(0));

const upload = {
  code: `import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.instance = crypto.randomUUID();
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("ping", "pong"));
  }
  fetch(request) {
    const { searchParams } = new URL(request.url);
    const [client, server] = Object.values(new WebSocketPair());
    const user = searchParams.get("user");
    this.ctx.acceptWebSocket(server, [user, "all"]);
    server.serializeAttachment({ user, at: 1 });
    return new Response(null, { status: 101, webSocket: client });
  }
  webSocketMessage(socket, text) {
    const { user } = socket.deserializeAttachment();
    const count = (tag) => this.ctx.getWebSockets(tag).length;
    if (text === "leave") return socket.close(4001, "left");
    if (text === "wake") return this.ctx.storage.setAlarm(Date.now() + 10);
    const own = this.ctx.getWebSocketAutoResponseTimestamp(socket) !== null;
    const facts = { from: user, text, instance: this.instance, tags: this.ctx.getTags(socket), all: count(), own: count(user), pinged: own };
    for (const each of this.ctx.getWebSockets("all")) each.send(JSON.stringify(facts));
  }
  async webSocketClose(socket, code, reason, wasClean) {
    this.ctx.storage.kv.put("closed", { user: socket.deserializeAttachment().user, code, reason, wasClean });
  }
  alarm() { for (const each of this.ctx.getWebSockets("all")) each.send(JSON.stringify({ text: "alarm", instance: this.instance })); }
  closed() { return this.ctx.storage.kv.get("closed") ?? null; }
}
export default { async fetch(request, env) {
  const room = env.ROOMS.getByName(new URL(request.url).pathname);
  if (request.headers.get("upgrade") === "websocket") return room.fetch(request);
  return Response.json(await room.closed());
} };`,
  bindings: [{ type: "durable_object_namespace", name: "ROOMS", class_name: "Room" }],
  metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["Room"] } },
};

interface Facts {
  text: string;
  instance: string;
}
async function join(
  room: string,
  user: string,
): Promise<{ socket: WebSocket; next: () => Promise<unknown> }> {
  const socket = hosting.connect("rooms", `/${room}?user=${user}`);
  const received: string[] = [];
  const waiting: ((text: string) => void)[] = [];
  socket.on("message", (data: Buffer) => {
    const give = waiting.shift();
    if (give === undefined) received.push(data.toString());
    else give(data.toString());
  });
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  const next = async (): Promise<unknown> => {
    const text = received.shift() ?? (await new Promise<string>((resolve) => waiting.push(resolve)));
    return text === "pong" ? text : (JSON.parse(text) as unknown);
  };
  return { socket, next };
}

it("sockets have tags and attachments, and a close has its code and reason", async () => {
  const anna = await join("tags", "anna");
  const bert = await join("tags", "bert");
  anna.socket.send("hello");
  const facts = { from: "anna", text: "hello", tags: ["anna", "all"], all: 2, own: 1, pinged: false };
  for (const { next } of [anna, bert]) expect(await next()).toMatchObject(facts);
  bert.socket.send("leave");
  const closed = await new Promise((resolve) =>
    bert.socket.once("close", (...how: unknown[]) => resolve(how.map(String))),
  );
  expect(closed).toEqual(["4001", "left"]);
  anna.socket.close(4002, "enough");
  await expect
    .poll(async () => JSON.parse((await hosting.ask("rooms", "/tags")).body) as unknown)
    .toEqual({ user: "anna", code: 4002, reason: "enough", wasClean: true });
});

/** Number of objects in memory: those whose databases are open in some process. */
function liveObjects(): number {
  const [{ id } = { id: "" }] = hosting.services.objectNamespaces.list(hosting.account);
  const linksOf = (pid: string): string[] => {
    try {
      return readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
    } catch {
      return []; // the process or a file of it is gone
    }
  };
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.flatMap(linksOf).filter((link) => link.includes(id) && link.endsWith(".1.sqlite")).length;
}

it("idle objects leave memory while their sockets stay; messages and alarms wake other instances", async () => {
  const others = await Promise.all(
    Array.from({ length: 20 }, async (_, i) => join(`room${i % 5}`, `user${i}`)),
  );
  const { socket, next } = await join("sleep", "anna");
  expect(liveObjects()).toBeGreaterThanOrEqual(6);
  socket.send("first");
  const { instance } = (await next()) as Facts;
  // An automatic answer does not wake the object, so the instance still ends.
  const pings = setInterval(() => socket.send("ping"), 2000);
  expect(await next()).toBe("pong");
  // workerd ends idle instances after 10 s.
  await expect.poll(liveObjects, { interval: 500 }).toBe(0);
  clearInterval(pings);
  socket.send("second");
  let message = await next();
  while (message === "pong") message = await next();
  expect(message).toMatchObject({
    text: "second",
    from: "anna",
    tags: ["anna", "all"],
    all: 1,
    pinged: true,
  });
  const woken = (message as Facts).instance;
  expect(woken).not.toBe(instance);
  socket.send("wake");
  expect(await next()).toEqual({ text: "alarm", instance: woken });
  expect(others.map((each) => each.socket.readyState)).toEqual(others.map(() => socket.OPEN));
  // After a deployment the next request replaces the instance, also one that sleeps with sockets.
  const closed = new Promise((resolve) => others[0]!.socket.once("close", resolve));
  const code = upload.code.replace("?? null", '?? "of the new version"');
  await hosting.deploy("rooms", { ...upload, code, metadata: {} });
  expect((await hosting.ask("rooms", "/room0")).body).toBe('"of the new version"');
  expect(await closed).toBe(1006);
  for (const each of [socket, ...others.map((other) => other.socket)]) each.close();
});

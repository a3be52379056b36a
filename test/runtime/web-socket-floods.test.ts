import { createHash } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import { deflateRawSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { WebSocket } from "ws";
import { mebibyte } from "../../src/platform/bytes.ts";
import { ownerToken } from "../helpers/server.ts";
import { cellPids } from "./cell-processes.ts";
import { callsOf, startHosting, startOutside, type Calls, type Hosting } from "./platform.ts";
import { flood, frame, openRawWebSocket } from "./raw-web-socket.ts";

/* Floods of visitors and origins over a WebSocket, next to the WebSocket of another account in the same cell. */

let hosting: Hosting;
let other: Calls;
let innocent: WebSocket;
let pids: number[];

const script = (heard: string): string => `export default { fetch() {
  const [client, server] = Object.values(new WebSocketPair());
  server.accept();
  server.binaryType = "arraybuffer";
  server.addEventListener("message", ({ data }) => { ${heard} });
  return new Response(null, { status: 101, webSocket: client });
} };`;
const framesCount = { sink: 500_000, room: 100_000 };
/** Says so when it has heard the whole flood. */
const sink = script(
  `server.heard = (server.heard ?? 0) + 1;
   if (server.heard === ${framesCount.sink}) server.send("all");`,
);
const echo = script("server.send(data);");

/** As `sink`, in a Durable Object. */
const room = {
  code: `import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject {
  fetch() {
    const [client, server] = Object.values(new WebSocketPair());
    this.ctx.acceptWebSocket(server);
    return new Response(null, { status: 101, webSocket: client });
  }
  heard = 0;
  webSocketMessage(socket) { if (++this.heard === ${framesCount.room}) socket.send("all"); }
}
export default { fetch: (request, env) => env.ROOMS.getByName(new URL(request.url).pathname).fetch(request) };`,
  bindings: [{ type: "durable_object_namespace", name: "ROOMS", class_name: "Room" }],
  metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["Room"] } },
};

beforeAll(async () => {
  hosting = await startHosting({ cells: 1, privateNetworks: "all" });
  const { body } = await hosting.call("POST", "/accounts", { name: "other" });
  other = await callsOf({ ...hosting.ready, account_id: body.result.id }, ownerToken);
  await hosting.deploy("sink", sink);
  await hosting.deploy("room", room);
  await other.deploy("echo", echo);
  innocent = other.connect("echo");
  await once(innocent, "open");
  pids = cellPids(process.pid);
});
afterAll(async () => {
  innocent.terminate();
  await hosting.close(0);
});

/** Sends a message over the other account's WebSocket. Resolves when it has come back. */
async function ping(text: string): Promise<void> {
  const end = new AbortController();
  const closed = (): void => end.abort(new Error("the other account's WebSocket was closed"));
  innocent.once("close", closed);
  innocent.send(text);
  const [data] = (await once(innocent, "message", { signal: end.signal })) as [Buffer];
  innocent.off("close", closed);
  expect(data.toString()).toBe(text);
}

/** Uses the other account's WebSocket while `attack` is in progress. Returns what `attack` returns. */
async function besides<T>(attack: () => Promise<T>): Promise<T> {
  const state = { isOver: false };
  const attacking = attack().finally(() => (state.isOver = true));
  for (let count = 1; !state.isOver; count++) await ping(`message ${count}`);
  const result = await attacking;
  // No cell has ended.
  expect(cellPids(process.pid)).toEqual(expect.arrayContaining(pids));
  return result;
}

const open = async (name: string, extensions?: string): Promise<Socket> => {
  const socket = await openRawWebSocket(hosting.ready.edge, hosting.hostOf(name), extensions);
  return socket.resume();
};
/** Aborted when the connection closes. */
function endOf(socket: Socket): AbortSignal {
  const end = new AbortController();
  socket.once("close", () => end.abort(new Error("the connection was closed")));
  return end.signal;
}
const many = (bytes: Buffer): Buffer => Buffer.concat(Array<Buffer>(1000).fill(bytes));

test.each([
  ["messages of one byte", "sink"],
  ["messages of one byte to an object", "room"],
] as const)("a flood of %s does not keep others waiting", async (_, name) => {
  const socket = await open(name);
  const bytes = many(frame(0x82, Buffer.of(1)));
  const heard = once(socket, "data") as Promise<[Buffer]>;
  await besides(async () => {
    await flood(socket, bytes, (framesCount[name] / 1000) * bytes.length);
    expect((await heard)[0].subarray(2).toString()).toBe("all");
  });
  socket.destroy();
});

test("a flood of pings does not keep others waiting", async () => {
  const socket = await open("sink");
  const bytes = many(frame(0x89, Buffer.of(1)));
  await besides(async () => flood(socket, bytes, 500 * bytes.length));
  expect(socket.destroyed).toBe(false);
  socket.destroy();
});

test("a flood of an origin does not keep others waiting", async () => {
  const outside = await startOutside((_, response) => response.end());
  const bytes = many(frame(0x82, Buffer.of(1), false));
  const sent = new Promise<number>((resolve) => {
    outside.server.on("upgrade", ({ headers }, socket: Socket) => {
      socket.on("error", () => {});
      expect(headers["sec-websocket-extensions"]).toBeUndefined();
      const key = `${headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
      const accept = createHash("sha1").update(key).digest("base64");
      const lines = ["HTTP/1.1 101 Switching Protocols", "upgrade: websocket", "connection: upgrade"];
      socket.write([...lines, `sec-websocket-accept: ${accept}`, "", ""].join("\r\n"));
      resolve(flood(socket, bytes, 100 * bytes.length));
    });
  });
  await hosting.deploy(
    "client",
    `export default { async fetch() {
      const { webSocket } = await fetch("${outside.url}", { headers: { upgrade: "websocket" } });
      let count = 0;
      const all = new Promise((resolve) =>
        webSocket.addEventListener("message", () => { if (++count === 100_000) resolve(); }));
      webSocket.accept();
      await all;
      return new Response(String(count));
    } };`,
  );
  const answer = await besides(async () => hosting.ask("client"));
  expect(answer.body).toBe("100000");
  expect(await sent).toBe(100 * bytes.length);
  await outside.close();
});

test("of messages that never end, those without room are closed with 1009", async () => {
  const sockets = await Promise.all(Array.from({ length: 12 }, async () => open("sink")));
  const answers = new Map<Socket, Buffer>();
  for (const socket of sockets)
    socket.on("data", (data: Buffer) =>
      answers.set(socket, Buffer.concat([answers.get(socket) ?? Buffer.alloc(0), data])),
    );
  const begin = frame(0x82, Buffer.alloc(0), true, 31 * mebibyte);
  await besides(async () =>
    Promise.all(
      sockets.map(async (socket) => {
        socket.write(begin);
        await flood(socket, Buffer.alloc(65_536), 30 * mebibyte);
      }),
    ),
  );
  const closed = sockets.filter((socket) => answers.has(socket));
  expect(closed.length).toBeGreaterThanOrEqual(10);
  for (const socket of closed) expect(answers.get(socket)).toEqual(Buffer.from("880203f1", "hex"));
  for (const socket of sockets) socket.destroy();
  // The room is free again.
  const socket = other.connect("echo");
  await once(socket, "open");
  socket.send(Buffer.alloc(20 * mebibyte, 1));
  const [data] = (await once(socket, "message")) as [Buffer];
  expect(data.length).toBe(20 * mebibyte);
  socket.terminate();
});

test.each(["sink", "room"])("large whole messages to a %s do not end its cell", async (name) => {
  const count = 45;
  await hosting.deploy(
    "listener",
    name === "sink"
      ? script(`server.heard = (server.heard ?? 0) + 1; server.send(String(server.heard));`)
      : { ...room, code: room.code.replace(/if .*all"\)/, "socket.send(String(++this.heard))") },
  );
  const socket = await open("listener");
  const signal = endOf(socket);
  const message = frame(0x82, Buffer.alloc(30 * mebibyte, 1));
  await besides(async () => {
    for (let sent = 1; sent <= count; sent++) {
      const heard = once(socket, "data", { signal }) as Promise<[Buffer]>;
      await flood(socket, message, message.length);
      expect((await heard)[0].subarray(2).toString()).toBe(String(sent));
    }
  });
  socket.destroy();
});

test("compression is not agreed on, and compressed messages are refused", async () => {
  const socket = await open("sink", "permessage-deflate");
  const bomb = frame(0xc2, deflateRawSync(Buffer.alloc(30 * mebibyte)));
  const closed = once(socket, "close");
  await besides(async () => {
    await flood(socket, bomb, 50 * bomb.length);
    await closed;
  });
});

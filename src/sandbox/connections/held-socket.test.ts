import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, it } from "vitest";
import { HeldSocket } from "./held-socket.ts";

let folder = "";
let server: Server;
let cell: Socket;
let connection: Socket;
let held: HeldSocket;
let gate: PromiseWithResolvers<void>;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "selvedge-held-"));
  server = createServer({ allowHalfOpen: true }).listen(join(folder, "socket"));
  await once(server, "listening");
  const connected = once(server, "connection") as Promise<[Socket]>;
  gate = Promise.withResolvers<void>();
  connection = connect(join(folder, "socket"));
  held = new HeldSocket(connection, async () => gate.promise);
  [cell] = await connected;
});
afterEach(() => {
  held.destroy();
  cell.destroy();
  server.close();
  rmSync(folder, { recursive: true });
});

it("holds what the cell sends until the gate opens, in order, and passes what it receives at once", async () => {
  const received = text(held);
  let hasBegun = false;
  held.once("data", () => (hasBegun = true));
  cell.write("one ");
  held.write("question");
  expect(String(((await once(cell, "data")) as [Buffer])[0])).toBe("question");
  cell.write("two ");
  cell.end("three");
  expect(hasBegun).toBe(false);
  gate.resolve();
  expect(await received).toBe("one two three");
  await once(held, "close");
});

it("breaks the connection, and passes nothing, when the gate rejects", async () => {
  const chunks: unknown[] = [];
  held.on("data", (chunk) => chunks.push(chunk));
  cell.write("one");
  const failed = once(held, "error");
  const closed = once(cell.resume(), "close");
  gate.promise.catch(() => {}); // it may reject before anything waits
  gate.reject(new Error("not shipped"));
  expect(String((await failed)[0])).toContain("not shipped");
  cell.end();
  await closed;
  expect(chunks).toEqual([]);
});

it("reads no more than one piece while the gate is closed", async () => {
  held.resume();
  for (let i = 0; i < 64; i++) if (!cell.write(Buffer.alloc(64 * 1024))) break;
  expect(cell.writableNeedDrain).toBe(true);
  gate.resolve();
  await once(cell, "drain");
});

it("passes what it received before the cell reset the connection, and then ends", async () => {
  const received = text(held);
  held.write(Buffer.alloc(1024 * 1024)); // the cell does not read it to its end, so that it resets the connection
  const arrived = once(connection, "data");
  await new Promise<void>((resolve) => cell.write("answer", () => resolve()));
  await arrived;
  const closed = new Promise((resolve) => connection.once("close", resolve));
  cell.destroy();
  await closed;
  const ended = once(held, "close");
  gate.resolve();
  expect(await received).toBe("answer");
  await ended;
});

it("breaks when the cell resets the connection without an answer", async () => {
  held.write(Buffer.alloc(1024 * 1024));
  const failed = once(held.resume(), "error");
  cell.destroy();
  expect(["ECONNRESET", "EPIPE"]).toContain(((await failed)[0] as NodeJS.ErrnoException).code);
});

it("can be ended while it holds bytes of a connection that was closed", async () => {
  const received = text(held);
  const arrived = once(connection, "data");
  cell.write("answer");
  await arrived;
  const closed = once(connection, "close");
  connection.destroy();
  await closed;
  await new Promise<void>((resolve) => held.end(() => resolve()));
  gate.resolve();
  expect(await received).toBe("answer");
});

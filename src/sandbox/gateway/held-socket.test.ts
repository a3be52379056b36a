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
let held: HeldSocket;
let gate: PromiseWithResolvers<void>;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "selvedge-held-"));
  server = createServer({ allowHalfOpen: true }).listen(join(folder, "socket"));
  await once(server, "listening");
  const connected = once(server, "connection") as Promise<[Socket]>;
  gate = Promise.withResolvers<void>();
  held = new HeldSocket(connect(join(folder, "socket")), async () => gate.promise);
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

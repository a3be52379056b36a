import type { IncomingMessage } from "node:http";
import { Duplex } from "node:stream";
import { expect, it } from "vitest";
import { cpuMs } from "../../../test/helpers/cpu-ms.ts";
import { SendOnlyWebSocket } from "./web-socket.ts";

it.each([
  ["announces a large frame", Buffer.from("827f0000000010000000", "hex")],
  ["closes the connection", Buffer.from("8800", "hex")],
])("a client that %s and sends on is read no more", (_, first) => {
  const sent: Buffer[] = [];
  const socket = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      sent.push(chunk);
      done();
    },
  });
  const webSocket = new SendOnlyWebSocket(
    { headers: {} } as IncomingMessage,
    socket,
    Buffer.alloc(0),
    "trace-v1",
    () => {},
  );
  expect(webSocket.waitingBytes).toBe(0);
  socket.emit("data", first);
  const written = sent.length;
  const beganMs = cpuMs();
  const more = Buffer.alloc(64 * 1024, 0x89);
  for (let i = 0; i < 1000; i++) socket.emit("data", more);
  // All bytes were copied for each of them.
  expect(cpuMs() - beganMs).toBeLessThan(300);
  expect(sent).toHaveLength(written);
  socket.destroy();
});

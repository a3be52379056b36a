import { createSocket } from "node:dgram";
import { setTimeout as delay } from "node:timers/promises";
import type { Sent } from "./connection.ts";

const quietMs = 30;

/** Sends each message as a datagram, and waits briefly for responses. */
export async function sendDatagrams(port: number, messages: readonly Buffer[]): Promise<Sent> {
  const socket = createSocket("udp4");
  let answer = "";
  socket.on("error", () => {});
  socket.on("message", (bytes) => (answer += bytes.toString("latin1")));
  await Promise.all(
    messages.map((message) => new Promise((resolve) => socket.send(message, port, "127.0.0.1", resolve))),
  );
  await delay(quietMs);
  await new Promise<void>((resolve) => socket.close(() => resolve()));
  return { bytes: messages.reduce((sum, { length }) => sum + length, 0), answer, isClosed: false };
}

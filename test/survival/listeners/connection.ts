import { connect, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import { setTimeout as delay } from "node:timers/promises";
import type { Random } from "../../name-server/random.ts";

export interface Sent {
  bytes: number;
  /** The beginning of the response. */
  answer: string;
  /** Whether the platform closed the connection, or the test did after no more data came. */
  isClosed: boolean;
}

/** How long to wait for more data. The test draws no conclusion from silence. */
const firstMs = 150;
const quietMs = 30;
const longestMs = 2000;
const answerCharactersMax = 20_000;

/** Sends messages over one connection, with varying timing and splitting, and reads until it closes. */
export async function converse(
  random: Random,
  port: number,
  messages: readonly Buffer[],
  tls?: ConnectionOptions,
): Promise<Sent> {
  const socket: Socket =
    tls === undefined
      ? connect({ port, host: "127.0.0.1", allowHalfOpen: true })
      : connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false, ...tls });
  let answer = "";
  let receivedAt: number | undefined;
  let isClosed = false;
  socket.on("error", () => {});
  socket.on("data", (chunk: Buffer) => {
    receivedAt = performance.now();
    if (answer.length < answerCharactersMax) answer += chunk.toString("latin1");
  });
  const closed = new Promise<void>((resolve) => {
    socket.on("end", () => socket.end());
    socket.on("close", () => {
      isClosed = true;
      resolve();
    });
  });
  let bytes = 0;
  const write = (chunk: Buffer): void => {
    bytes += chunk.length;
    if (socket.writable) socket.write(chunk);
  };
  if (tls !== undefined && random.chance(95))
    await Promise.race([closed, new Promise((resolve) => socket.once("secureConnect", resolve))]);
  const all = Buffer.concat(messages);
  const manner = random.below(100);
  if (manner < 50) for (const message of messages) write(message);
  else if (manner < 65) write(all);
  else if (manner < 72) {
    // In pieces of one packet each, except the longest messages.
    const at = Array.from({ length: 6 }, () => random.below(all.length + 1)).sort((a, b) => a - b);
    for (const [index, end] of [...at, all.length].entries()) {
      write(all.subarray(at[index - 1] ?? 0, end));
      await delay(random.chance(20) ? 5 : 0);
    }
  } else if (manner < 74) {
    for (let i = 0; i < Math.min(all.length, 60); i++) {
      write(all.subarray(i, i + 1));
      await delay(1);
    }
  } else {
    write(all.subarray(0, manner < 90 ? random.below(all.length + 1) : all.length));
    if (manner < 80 || manner >= 95) {
      // Close at once, so that the end arrives with the bytes or before they are handled.
      const end = random.pick(["end", "reset", "destroy"]);
      if (end === "end") socket.end();
      else if (tls === undefined && end === "reset") socket.resetAndDestroy();
      else socket.destroy();
    } else if (manner < 85) {
      await delay(random.below(10));
      if (tls === undefined) socket.resetAndDestroy();
      else socket.destroy();
    }
  }
  const startedAt = performance.now();
  for (;;) {
    await Promise.race([closed, delay(quietMs)]);
    const now = performance.now();
    const isQuiet = receivedAt === undefined ? now - startedAt > firstMs : now - receivedAt >= quietMs;
    if (isClosed || isQuiet || now - startedAt > longestMs) break;
  }
  const byPlatform = isClosed;
  if (tls === undefined && random.chance(30)) socket.resetAndDestroy();
  else socket.destroy();
  await closed;
  return { bytes, answer, isClosed: byPlatform };
}

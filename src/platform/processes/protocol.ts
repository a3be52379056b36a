import { connect, type Socket } from "node:net";
import { join } from "node:path";
import type { MetricObjectWithValues, MetricValue } from "prom-client";
import { eachLine } from "../util/bounded-lines.ts";
import type { Change } from "../storage/storage.ts";

/**
 * The protocol between the main process ("main") and edge processes: lines of JSON over a Unix socket. Main
 * numbers its messages. An edge process carries them out in order, and then answers each with its number.
 */

export type EdgeMetrics = MetricObjectWithValues<MetricValue<string>>[];

/** `at` is a time by `machineMs`: the changes up to it are in effect in the edge process, or main waits for the process. */
export type FromMain = { n: number; at: number } & (
  | { do: "join"; dns: string }
  | { do: "serve" | "reload" | "metrics" }
  | { do: "beat"; lagSeconds: number }
  | { do: "change"; changes: readonly Change[] }
  | ({ do: "note" } & BusMessage)
);

/** A message between processes that is not stored, see `MessageBus`. */
export interface BusMessage {
  topic: string;
  value: unknown;
}

export type FromEdge =
  /** `hasServed`: the process has served visitors before, over another connection. */
  | { say: "hello"; id: number; hasServed: boolean }
  /** The process has loaded its configuration and waits for `serve`. */
  | { say: "ready" }
  /** The last message from main is too old to serve requests: the process asks for a new one. */
  | { say: "ask" }
  | ({ say: "note" } & BusMessage)
  | { say: "done"; n: number; metrics?: EdgeMetrics };

/**
 * After this time without an answer, main removes an edge process; without a message, an edge process stops
 * serving.
 */
export const silenceMsMax = 2000;
export const beatMs = 500;

/** The path of the socket for this protocol. */
export const channelPath = (folder: string): string => join(folder, "changes.sock");
/** The socket of requests that edge processes pass to main. */
export const requestPath = (folder: string): string => join(folder, "requests.sock");
/** The socket of calls to one process: main, or the edge process with this id. */
export const callsPath = (folder: string, id: number | "main"): string => join(folder, `calls-${id}.sock`);

const lineBytesMax = 64 * 1024 * 1024;

/** A message as a line of the protocol. */
export const messageLine = (message: unknown): string => `${JSON.stringify(message)}\n`;

/** Sends and receives messages. An invalid line ends the connection. */
export class MessageConnection<Received, Sent> {
  readonly #socket: Socket;

  constructor(socket: Socket, onMessage: (message: Received) => void) {
    this.#socket = socket;
    socket.on("error", () => socket.destroy());
    eachLine(socket, lineBytesMax, (line) => {
      let message: Received;
      try {
        message = JSON.parse(line) as Received;
      } catch {
        socket.destroy();
        return;
      }
      if (!socket.destroyed) onMessage(message);
    });
  }

  send(message: Sent): void {
    this.sendLine(messageLine(message));
  }

  /** Sends a message that `messageLine` has encoded. */
  sendLine(line: string): void {
    if (!this.#socket.destroyed) this.#socket.write(line);
  }

  /** Bytes that the other side has not read yet. */
  get unreadBytes(): number {
    return this.#socket.writableLength;
  }

  onEnd(ended: () => void): void {
    this.#socket.once("close", ended);
  }

  end(): void {
    this.#socket.destroy();
  }
}

/** Whether an error means that no process listens at a Unix socket. */
export const isAbsent = (error: unknown): boolean =>
  ["ECONNREFUSED", "ENOENT"].includes((error as { code?: string }).code ?? "");

/** Whether a connection to a Unix socket can be retried after an error, for example when the socket's queue is full. */
export const isBusyOrAbsent = (error: unknown): boolean =>
  isAbsent(error) || (error as { code?: string }).code === "EAGAIN";

/** Connects to a Unix socket. */
export const connectTo = (path: string): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect(path, () => resolve(socket.off("error", reject)));
    socket.once("error", reject);
  });

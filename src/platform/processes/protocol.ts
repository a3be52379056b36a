import { connect, type Socket } from "node:net";
import { join } from "node:path";
import type { MetricObjectWithValues, MetricValue } from "prom-client";
import { eachLine } from "../util/bounded-lines.ts";
import type { Change } from "../storage/storage.ts";

/**
 * The main process talks with edge processes over a Unix socket, in lines of JSON. Main numbers its messages, and an
 * edge process answers each with its number once it has done what it says, in their order.
 */

export type EdgeMetrics = MetricObjectWithValues<MetricValue<string>>[];

/** `at` is when main sent it, by `machineMs`. */
export type FromMain = { n: number; at: number } & (
  | { do: "join"; dns: string }
  | { do: "serve" | "reload" | "metrics" }
  | { do: "beat"; lagSeconds: number }
  | { do: "change"; changes: readonly Change[] }
  | ({ do: "note" } & Note)
);

/** A fact that no database keeps, on its way between processes. */
export interface Note {
  topic: string;
  value: unknown;
}

export type FromEdge =
  /** `hasServed`: it has served visitors before, for another conversation. */
  | { say: "hello"; id: number; hasServed: boolean }
  /** It has loaded its configuration, and waits for `serve`. */
  | { say: "ready" }
  /** Its last word from main is old. */
  | { say: "ask" }
  | ({ say: "note" } & Note)
  | { say: "done"; n: number; metrics?: EdgeMetrics };

/** An edge process that has not answered for so long is taken out; one without word for so long serves nothing. */
export const silenceMsMax = 2000;
export const beatMs = 500;

/** The socket of the conversation. */
export const channelPath = (folder: string): string => join(folder, "changes.sock");
/** The socket of requests that edge processes pass to main. */
export const requestPath = (folder: string): string => join(folder, "requests.sock");
/** The socket of calls to one process: main, or the edge process with this id. */
export const callsPath = (folder: string, id: number | "main"): string => join(folder, `calls-${id}.sock`);

const lineBytesMax = 64 * 1024 * 1024;

/** Sends and receives messages. A line that is no message ends the connection. */
export class Conversation<Received, Sent> {
  readonly #socket: Socket;

  constructor(socket: Socket, heard: (message: Received) => void) {
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
      if (!socket.destroyed) heard(message);
    });
  }

  send(message: Sent): void {
    if (!this.#socket.destroyed) this.#socket.write(`${JSON.stringify(message)}\n`);
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

/** Whether no process listens at a Unix socket. */
export const isAbsent = (error: unknown): boolean =>
  ["ECONNREFUSED", "ENOENT"].includes((error as { code?: string }).code ?? "");

/** Whether a connection to a Unix socket can be tried again. The system refuses it when the queue of the socket is full. */
export const isBusyOrAbsent = (error: unknown): boolean =>
  isAbsent(error) || (error as { code?: string }).code === "EAGAIN";

/** Connects to a Unix socket. */
export const connectTo = (path: string): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect(path, () => resolve(socket.off("error", reject)));
    socket.once("error", reject);
  });

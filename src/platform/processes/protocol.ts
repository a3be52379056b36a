import { connect, type Socket } from "node:net";
import { join } from "node:path";
import type { MetricObjectWithValues, MetricValue } from "prom-client";
import { eachLine } from "../util/bounded-lines.ts";
import type { Change } from "../storage/storage.ts";

/**
 * The protocol between the main process ("main") and edge processes. A message to all edge processes is a record of the
 * ring (`ring.ts`), which main writes and they read: before each request, and when main tells them to look. The rest
 * are lines of JSON over a Unix socket.
 */

/** Increased with every change of the ring or the messages. Processes with different numbers do not work together. */
export const protocolVersion = 2;

export type RingRecord =
  | { do: "change"; changes: readonly Change[] }
  /** Changes may be missing before this record: read everything again. */
  | { do: "reload" }
  /** A message is missing here, because it was too long: join again. */
  | { do: "rejoin" }
  /** `except`: the id of the edge process that sent the message. */
  | ({ do: "note"; except?: number } & BusMessage);

/** A message between processes that is not stored, see `MessageBus`. */
export interface BusMessage {
  topic: string;
  value: unknown;
}

export type FromMain =
  /** The first message. `notes` are the state up to this position of the ring. */
  | { do: "join"; version: number; dns: string; position: number; notes: BusMessage[] }
  /** Twice a second: look at the ring, and answer. */
  | { do: "beat"; lagSeconds: number }
  /** The ring has new records. */
  | { do: "look" }
  /** Answer when this position is reached. */
  | { do: "tell"; position: number };

export type FromEdge =
  | { say: "hello"; version: number; id: number }
  /** The process has loaded its configuration and serves. */
  | { say: "ready" }
  /** The position that the process has reached, and whether it reads everything again. */
  | { say: "at"; position: number; isReading: boolean }
  | ({ say: "note" } & BusMessage);

export type EdgeMetrics = MetricObjectWithValues<MetricValue<string>>[];
/** The call (`process-calls`) by which main reads the metrics of an edge process. */
export const metricsCall = "metrics";

/** After this time without an answer, main removes an edge process. */
export const silenceMsMax = 2000;
export const beatMs = 500;

/** The ring with main's records. */
export const ringPath = (folder: string): string => join(folder, "ring");
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

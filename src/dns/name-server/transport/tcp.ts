import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { closeListener, listenAt, type ListenAt } from "../../../platform/listen/listen.ts";
import { endsWithin } from "../../../platform/util/ends-within.ts";
import type { Answering } from "../answering.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";
import { plainAddress } from "../wire/address.ts";

export interface TcpLimits {
  connectionsMax: number;
  connectionsPerAddressMax: number;
  /** Time without a complete message after which a connection is closed (RFC 7766 §6.2.3). */
  idleTimeoutMs: number;
  /** Queries of one connection that are processed concurrently. */
  pipelinedMax: number;
}
export const tcpDefaults: TcpLimits = {
  connectionsMax: 1000,
  connectionsPerAddressMax: 100,
  idleTimeoutMs: 10_000,
  pipelinedMax: 100,
};

/** Time for queries that are in progress when the listener closes. */
const lastQueriesMs = 300;

/** Handles queries whose response has several messages: resolves after the last one. Returns undefined for others. */
export type StreamHandler = (message: Buffer, connection: Connection) => Promise<void> | undefined;

/** A TCP connection, as its handlers see it. */
export interface Connection {
  readonly address: string;
  /** Sends one message. Resolves when more can be sent, with false if the connection is closed. */
  send(message: Buffer): Promise<boolean>;
  end(): void;
}

/**
 * Answers messages on TCP connections, which clients may pipeline (RFC 7766). A packet may have thousands of messages. They
 * take many turns of the event loop, and transfers run one at a time, so that other clients do not wait.
 */
export class TcpListener {
  readonly #answering: Answering;
  readonly #streams: StreamHandler;
  readonly #limits: TcpLimits;
  readonly #sockets = new Set<Socket>();
  readonly #perAddress = new Map<string, number>();
  #server: Server | undefined;

  constructor(answering: Answering, streams: StreamHandler, limits: TcpLimits = tcpDefaults) {
    this.#answering = answering;
    this.#streams = streams;
    this.#limits = limits;
  }

  async listen(at: ListenAt): Promise<AddressInfo> {
    const server = createServer({ noDelay: true }, (socket) => this.#accept(socket));
    server.maxConnections = this.#limits.connectionsMax;
    const address = await listenAt(server, at);
    this.#server = server;
    return address;
  }

  /** Accepts no more connections. Open connections get a short time for the answers to their queries. */
  async close(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    const closed = closeListener(server);
    await endsWithin(lastQueriesMs, closed);
    for (const socket of this.#sockets) socket.destroySoon();
    await endsWithin(lastQueriesMs, closed);
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #accept(socket: Socket): void {
    const address = plainAddress(socket.remoteAddress ?? "");
    const count = (this.#perAddress.get(address) ?? 0) + 1;
    if (address === "" || count > this.#limits.connectionsPerAddressMax) {
      socket.destroy();
      return;
    }
    this.#perAddress.set(address, count);
    this.#sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      this.#sockets.delete(socket);
      const left = this.#perAddress.get(address)! - 1;
      if (left === 0) this.#perAddress.delete(address);
      else this.#perAddress.set(address, left);
    });
    this.#converse(socket, address);
  }

  #converse(socket: Socket, address: string): void {
    let pending: Buffer = Buffer.alloc(0);
    let inFlight = 0;
    let isReading = false;
    let isWaiting = false; // for the end of a transfer, or for the next turn of the event loop
    // Only complete messages reset the timer. Otherwise a client could hold a connection by sending single
    // bytes.
    const idle = setTimeout(() => socket.destroy(), this.#limits.idleTimeoutMs);
    socket.on("close", () => clearTimeout(idle));
    const connection = connectionOf(socket, address, () => idle.refresh());

    const isFull = (): boolean =>
      isWaiting || inFlight >= this.#limits.pipelinedMax || socket.writableNeedDrain;
    const goOn = (): void => {
      isWaiting = false;
      if (!socket.destroyed) resume();
    };
    const read = (): void => {
      if (isReading) return;
      isReading = true;
      for (let taken = 0; !isFull() && pending.length >= 2; taken++) {
        const end = 2 + pending.readUInt16BE(0);
        if (pending.length < end) break;
        if (taken === this.#limits.pipelinedMax) {
          isWaiting = true;
          setImmediate(goOn);
          break;
        }
        const message = pending.subarray(2, end);
        pending = pending.subarray(end);
        idle.refresh();
        const streaming = this.#streams(message, connection);
        if (streaming !== undefined) {
          isWaiting = true;
          unawaited(streaming.finally(() => setImmediate(goOn)));
          break;
        }
        inFlight++;
        this.#answering.take(message, message.length, { address, isTcp: true }, (answer) => {
          inFlight--;
          if (answer !== undefined) socket.write(framed(answer));
          if (!isReading) resume();
        });
      }
      isReading = false;
    };
    const resume = (): void => {
      read();
      if (isFull()) socket.pause();
      else socket.resume();
    };
    socket.on("data", (chunk: Buffer) => {
      pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
      resume();
    });
    socket.on("drain", resume);
  }
}

function connectionOf(socket: Socket, address: string, onSend: () => void): Connection {
  return {
    address,
    async send(message) {
      onSend();
      if (socket.destroyed) return false;
      if (socket.write(framed(message))) return true;
      await writable(socket);
      return !socket.destroyed;
    },
    end: () => socket.destroy(),
  };
}

function framed(message: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(2 + message.length);
  frame.writeUInt16BE(message.length, 0);
  message.copy(frame, 2);
  return frame;
}

/** Resolves when more can be written, or when the connection is closed. */
const writable = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      socket.off("drain", done);
      socket.off("close", done);
      resolve();
    };
    socket.on("drain", done);
    socket.on("close", done);
  });

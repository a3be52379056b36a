import { AsyncLocalStorage } from "node:async_hooks";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { closeListener, gentleMs, listenAt, type ListenAt } from "../../platform/listen/listen.ts";
import { CoarseClock } from "../origin-client/coarse-clock.ts";
import { Http1Connection, type ConnectionServer, type Http1Limits } from "./connection.ts";
import type { RequestError } from "./errors.ts";
import type { Http1Request } from "./request.ts";
import type { Http1Response } from "./response.ts";

/** The work of a server with requests. */
export type Http1Handlers = Pick<ConnectionServer, "serve" | "isUpgrade" | "serveUpgrade" | "refuse">;

/** An HTTP/1.1 server for visitors, with the requests and responses of node:http. */
export class Http1Server implements ConnectionServer {
  readonly limits: Http1Limits;
  readonly clock: CoarseClock;
  isEnding = false;
  readonly #handlers: Http1Handlers;
  readonly #listener: Server;
  readonly #connections = new Set<Http1Connection>();
  readonly outside = AsyncLocalStorage.snapshot();
  #whenEmpty: (() => void) | undefined;

  constructor(limits: Http1Limits, handlers: Http1Handlers) {
    const { headTimeoutMs, keepAliveTimeoutMs, idleTimeoutMs } = limits;
    this.limits = limits;
    this.#handlers = handlers;
    this.clock = new CoarseClock([headTimeoutMs, keepAliveTimeoutMs, idleTimeoutMs]);
    // Half-open, so that the end of an incomplete request can be answered.
    this.#listener = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => this.accept(socket));
  }

  /** The number of open connections, with those that were upgraded. */
  get open(): number {
    return this.#connections.size;
  }

  /** The listening address; undefined while not listening. */
  get address(): AddressInfo | undefined {
    return (this.#listener.address() as AddressInfo | null) ?? undefined;
  }

  async listen(at: ListenAt): Promise<AddressInfo> {
    return listenAt(this.#listener, at);
  }

  /** Serves a connection, also one that another listener has accepted. */
  accept(socket: Duplex): void {
    this.#connections.add(new Http1Connection(socket as Socket, this));
  }

  /** From now on, each response ends its connection. */
  announceEnd(): void {
    this.isEnding = true;
  }

  /**
   * Stops accepting, waits for requests in progress, and destroys the remaining connections after `deadlineMs`. A
   * connection without a request has a part of that time to send one: its client may have just connected, and closing at
   * once would reset it.
   */
  async drain(deadlineMs: number): Promise<void> {
    this.announceEnd();
    const closed = closeListener(this.#listener);
    const idle = setInterval(() => {
      for (const connection of this.#connections) connection.closeIfIdle();
    }, gentleMs(deadlineMs));
    const timer = setTimeout(() => {
      for (const { socket } of this.#connections) socket.destroy();
    }, deadlineMs);
    await closed;
    if (this.#connections.size > 0) await new Promise<void>((resolve) => (this.#whenEmpty = resolve));
    clearInterval(idle);
    clearTimeout(timer);
  }

  serve(request: Http1Request, response: Http1Response): void {
    this.#handlers.serve(request, response);
  }

  isUpgrade(request: Http1Request): boolean {
    return this.#handlers.isUpgrade(request);
  }

  serveUpgrade(request: Http1Request, socket: Socket, head: Buffer): void {
    this.#handlers.serveUpgrade(request, socket, head);
  }

  refuse(error: RequestError, socket: Socket, text: string): void {
    this.#handlers.refuse(error, socket, text);
  }

  isClosed(connection: Http1Connection): void {
    this.#connections.delete(connection);
    if (this.#connections.size === 0) this.#whenEmpty?.();
  }
}

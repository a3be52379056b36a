import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { finished } from "node:stream/promises";
import { cellHeaders } from "../../../sandbox/protocol.ts";
import { MalformedError } from "../../../sandbox/gateway/cell-messages.ts";
import type { OutboundSockets, SocketDestination } from "../../../edge/origin/outbound-sockets.ts";
import type { Transport } from "./socket-orders.ts";

interface Opened extends SocketDestination {
  transport: Transport;
  allowHalfOpen: boolean;
}

/**
 * A TCP connection that a script has opened. Data from the peer is the body of one answer; each write is the
 * body of a request, answered when it has been sent. Both directions have back-pressure. When either breaks
 * off, the script has ended, and the connection is closed.
 */
export class RunSocket {
  /** Resolves when the connection has ended. Never rejects. */
  readonly closed: Promise<void>;
  readonly #outbound: OutboundSockets;
  readonly #opened: Opened;
  readonly #plain: Socket;
  /** The socket for writes: TLS over the plain socket, once started. */
  #socket: Socket;
  #answer: ServerResponse | undefined;
  #isTaking = false;

  constructor(outbound: OutboundSockets, opened: Opened, plain: Socket) {
    this.#outbound = outbound;
    this.#opened = opened;
    this.#plain = plain;
    this.#socket = plain;
    this.closed = new Promise((resolve) => {
      if (plain.closed) resolve();
      else plain.once("close", () => resolve());
    });
    plain.setTimeout(outbound.idleTimeoutMs, () => plain.destroy());
  }

  get hostname(): string {
    return this.#opened.hostname;
  }
  get port(): number {
    return this.#opened.port;
  }

  get canUpgrade(): boolean {
    return this.#opened.transport === "starttls" && this.#socket === this.#plain && !this.#isTaking;
  }

  /** Starts TLS and ends the previous answer. Rejects with a visitor error. */
  async secure(servername: string): Promise<void> {
    const plain = this.#plain;
    const before = this.#answer;
    this.#answer = undefined;
    plain.unpipe();
    before?.end();
    this.#isTaking = true; // no other writes during the handshake
    this.#socket = await this.#outbound.secure(plain, servername);
    this.#isTaking = false;
    this.#socket.once("close", () => plain.destroy());
  }

  /** Sends data from the peer as the body of this answer. */
  answer(response: ServerResponse, id: string): void {
    const socket = this.#socket;
    this.#answer = response;
    response.writeHead(200, [cellHeaders.socket, id]).flushHeaders();
    response.once("close", () => {
      if (this.#answer === response && !response.writableFinished) this.destroy();
    });
    // If the connection breaks, the answer must break off too.
    socket.once("close", () => {
      if (!response.writableEnded) response.destroy();
    });
    if (socket.closed) response.destroy();
    else socket.pipe(response);
  }

  /** Writes the body of a request to the peer. */
  async take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#isTaking) throw new MalformedError("The socket is being written to.");
    this.#isTaking = true;
    const socket = this.#socket;
    const leave = (): void => {
      request.destroy();
    };
    socket.once("close", leave);
    if (socket.closed) leave();
    else request.pipe(socket, { end: false });
    try {
      await finished(request, { writable: false });
      await new Promise<void>((resolve, reject) => {
        socket.write("", (error) => (error ? reject(error) : resolve()));
      });
      response.writeHead(204).end();
    } catch {
      this.destroy();
      response.destroy();
    } finally {
      socket.off("close", leave);
      this.#isTaking = false;
    }
  }

  end(): void {
    this.#socket.end();
  }

  /** Closes the connection after pending writes. */
  close(): void {
    this.#socket.unpipe();
    this.#answer?.end();
    this.#socket.destroySoon();
  }

  destroy(): void {
    this.#socket.destroy();
    this.#plain.destroy();
  }
}

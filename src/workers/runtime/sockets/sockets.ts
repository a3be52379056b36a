import type { IncomingMessage, ServerResponse } from "node:http";
import { MalformedError } from "../../../sandbox/gateway/cell-messages.ts";
import { Refusal } from "../../../sandbox/errors.ts";
import { VisitorError } from "../../../edge/http/errors.ts";
import type { OutboundSockets } from "../../../edge/origin/outbound-sockets.ts";
import { refusals, socketsMax } from "../errors.ts";
import { RunSocket } from "./socket.ts";
import type { SocketOrder } from "./socket-orders.ts";

/** Time after the answer in which work that the script left running may use its sockets. */
const afterAnswerMs = 30_000;
/** SMTP is blocked, as scripts must not send mail in this installation's name. */
const mailPort = 25;
/** The public service's errors begin with this. */
const failure = "proxy request failed, cannot connect to the specified address";
const hint = "It looks like a service that speaks HTTP: consider using fetch instead";

const reasons: Record<number, string> = {
  521: "the connection was refused",
  522: "it did not accept the connection in time",
  523: "there is no route to it",
  525: "the TLS handshake failed",
  526: "its certificate is not valid for this name",
  1000: "it is one of this installation's own services",
  1016: "the name has no address",
  1803: "it is a private address, which this installation does not allow",
};

type OrderOf<What> = Extract<SocketOrder, { do: What }>;

/** The sockets of one run. Orders reach it only with the run's token. */
export class RunSockets {
  readonly #outbound: OutboundSockets;
  readonly #known = new Map<string, RunSocket>();
  #opening = 0;
  #lastId = 0;
  #isOver = false;

  /** `isLate`: the script has answered already. */
  constructor(outbound: OutboundSockets, isLate: boolean) {
    this.#outbound = outbound;
    if (isLate) this.closeLater();
  }

  /** Resolves when the socket is closed: until then it counts as a subrequest of its account. */
  async open(order: OrderOf<"open">, response: ServerResponse): Promise<void> {
    const { port, transport, allowHalfOpen } = order;
    if (this.#known.size + this.#opening >= socketsMax) throw refusals.sockets();
    this.#opening++;
    let socket: RunSocket;
    try {
      if (port === mailPort) throw new Refusal(`${failure}: port ${mailPort} is closed to scripts`);
      const plain = await this.#outbound.open(order, allowHalfOpen);
      socket = new RunSocket(this.#outbound, order, plain);
      if (transport === "on") await socket.secure(order.servername || order.hostname);
    } catch (error) {
      throw refused(error, port);
    } finally {
      this.#opening--;
    }
    if (response.destroyed || this.#isOver) {
      socket.destroy();
      response.destroy();
      return;
    }
    const id = String(++this.#lastId);
    this.#known.set(id, socket);
    socket.answer(response, id);
    await socket.closed;
    this.#known.delete(id);
  }

  async go(
    order: Exclude<SocketOrder, { do: "open" }>,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const socket = this.#known.get(order.id);
    if (socket === undefined) throw new Refusal("The socket is closed.");
    if (order.do === "write") await socket.take(request, response);
    else if (order.do === "tls") await this.#startTls(order, socket, response);
    else {
      if (order.do === "end") socket.end();
      else socket.close();
      response.writeHead(204).end();
    }
  }

  async #startTls(
    { id, servername }: OrderOf<"tls">,
    socket: RunSocket,
    response: ServerResponse,
  ): Promise<void> {
    if (!socket.canUpgrade)
      throw new MalformedError("The socket was not opened with secureTransport starttls.");
    try {
      await socket.secure(servername || socket.hostname);
    } catch (error) {
      throw refused(error, socket.port);
    }
    if (response.destroyed) socket.destroy();
    else socket.answer(response, id);
  }

  /** Closes the sockets some time after the answer. */
  closeLater(): void {
    setTimeout(() => this.#close(), afterAnswerMs).unref();
  }

  #close(): void {
    this.#isOver = true;
    for (const socket of this.#known.values()) socket.destroy();
  }
}

function refused(error: unknown, port: number): unknown {
  if (!(error instanceof VisitorError)) return error;
  const text = `${failure}: ${reasons[error.code] ?? "the connection failed"}`;
  return new Refusal(port === 80 || port === 443 ? `${text}. ${hint}` : text);
}

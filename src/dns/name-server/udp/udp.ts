import type { RemoteInfo, Socket } from "node:dgram";
import type { Answering } from "../answering.ts";
import { plainAddress } from "../wire/address.ts";

const bufferBytes = 4 * 1024 * 1024;

/** Answers datagrams one at a time. */
export class UdpListener {
  readonly #answering: Answering;
  #socket: Socket | undefined;

  constructor(answering: Answering) {
    this.#answering = answering;
  }

  /** Answers on a bound socket. */
  listen(socket: Socket): void {
    socket.on("message", (message, remote) => this.#take(socket, message, remote));
    socket.on("error", () => {}); // concerns only one packet: an unreachable client, or a full buffer
    try {
      socket.setRecvBufferSize(bufferBytes);
      socket.setSendBufferSize(bufferBytes);
    } catch {
      // the system keeps its smaller buffer
    }
    this.#socket = socket;
  }

  async close(): Promise<void> {
    const socket = this.#socket;
    if (socket !== undefined) await new Promise<void>((resolve) => socket.close(() => resolve()));
  }

  #take(socket: Socket, message: Buffer, { address, port }: RemoteInfo): void {
    if (port === 0) return;
    this.#answering.take(
      message,
      message.length,
      { address: plainAddress(address), isTcp: false },
      (answer) => {
        if (answer !== undefined && socket === this.#socket) socket.send(answer, port, address, ignore);
      },
    );
  }
}

const ignore = (): void => {};

import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { isIPv6, type AddressInfo } from "node:net";
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

  /** With `isShared`, several threads can listen on one port, and the system distributes the clients. */
  async listen(host: string, port: number, isShared: boolean): Promise<AddressInfo> {
    const socket = createSocket({
      type: isIPv6(host) ? "udp6" : "udp4",
      reusePort: isShared,
      // Addresses are always literal. The default lookup would cost one iteration of the event loop for each
      // packet.
      lookup: (name, _options, callback) => callback(null, name, isIPv6(name) ? 6 : 4),
    });
    socket.on("message", (message, remote) => this.#take(socket, message, remote));
    await new Promise<void>((resolve, reject) => {
      socket.once("error", reject);
      socket.bind(port, host, () => {
        socket.off("error", reject);
        resolve();
      });
    });
    socket.on("error", () => {}); // concerns only one packet: an unreachable client, or a full buffer
    try {
      socket.setRecvBufferSize(bufferBytes);
      socket.setSendBufferSize(bufferBytes);
    } catch {
      // the system keeps its smaller buffer
    }
    this.#socket = socket;
    return socket.address();
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

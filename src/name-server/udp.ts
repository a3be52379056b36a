import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { isIPv6, type AddressInfo } from "node:net";
import type { Answering } from "./answering.ts";
import { plainAddress } from "./wire/address.ts";

const bufferBytes = 4 * 1024 * 1024;

/** Answers datagrams. */
export class UdpListener {
  readonly #answering: Answering;
  #socket: Socket | undefined;

  constructor(answering: Answering) {
    this.#answering = answering;
  }

  /** Several threads may listen on one port when `isShared`: the system gives each a part of the clients. */
  async listen(host: string, port: number, isShared: boolean): Promise<AddressInfo> {
    const socket = createSocket({
      type: isIPv6(host) ? "udp6" : "udp4",
      reusePort: isShared,
      // Addresses are always literal; the default look-up would cost a turn of the event loop for each packet.
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
    socket.on("error", () => {}); // of one packet: an unreachable client, or a full buffer
    try {
      socket.setRecvBufferSize(bufferBytes);
      socket.setSendBufferSize(bufferBytes);
    } catch {
      // the system allows less, and keeps what it has
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

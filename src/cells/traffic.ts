import type { Socket } from "node:net";

/** Bytes that have gone over connections, those that are closed included. */
export class Traffic {
  readonly #open = new Set<Socket>();
  #closedBytes = 0;

  add(socket: Socket): void {
    this.#open.add(socket);
    socket.once("close", () => {
      this.#open.delete(socket);
      this.#closedBytes += bytesOf(socket);
    });
  }

  get bytes(): number {
    let bytes = this.#closedBytes;
    for (const socket of this.#open) bytes += bytesOf(socket);
    return bytes;
  }
}

const bytesOf = (socket: Socket): number => socket.bytesRead + socket.bytesWritten;

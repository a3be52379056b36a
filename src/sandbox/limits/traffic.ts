import { connect, type Socket } from "node:net";
import type { buildConnector } from "undici";

/** Counts the bytes of open and closed connections. */
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

/** Connects pools to a cell's socket, and counts the bytes. `held` wraps the connections before the pools use them. */
export const connectorTo =
  (path: string, traffic: Traffic, held: (socket: Socket) => Socket) =>
  (_options: unknown, done: buildConnector.Callback): void => {
    const socket = connect(path);
    const failed = (error: Error): void => done(error, null);
    socket.once("error", failed).once("connect", () => {
      socket.off("error", failed);
      traffic.add(socket);
      done(null, held(socket));
    });
  };

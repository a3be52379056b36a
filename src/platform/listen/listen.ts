import { Server, type AddressInfo, type BoundSocket, type ListenOptions } from "node:net";

/** The address of a listener: a socket that is bound already, its descriptor, or an address. */
export type ListenAt =
  | BoundSocket
  | { fd: number }
  | { path: string }
  | Pick<ListenOptions, "host" | "port" | "reusePort">;

/** Listens and returns the bound address. */
export async function listenAt(server: Server, at: ListenAt): Promise<AddressInfo> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(at, () => {
      // Ignore connections that could not be accepted, for example for lack of memory: their clients retry.
      server.off("error", reject).on("error", () => {});
      resolve();
    });
  });
  return server.address() as AddressInfo;
}

/**
 * Stops accepting connections, and resolves once all of them are closed. Unlike the method of node:http, this
 * one leaves idle connections open.
 */
export async function closeListener(server: Server): Promise<void> {
  await quickTurn();
  await new Promise<void>((resolve) => Server.prototype.close.call(server, () => resolve()));
}

const turnsMax = 500;
const quickMs = 0.2;

/**
 * Waits for a turn of the event loop in which it had little to do but to accept connections. The system resets
 * connections that it has completed and that were not accepted when the socket closes, so no time may pass.
 */
async function quickTurn(): Promise<void> {
  let tookMs = Infinity;
  for (let turn = 0; turn < turnsMax && tookMs > quickMs; turn++) {
    const startMs = performance.now();
    await new Promise<void>((resolve) => setImmediate(resolve));
    tookMs = performance.now() - startMs;
  }
}

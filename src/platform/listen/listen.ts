import { Server, type AddressInfo, type BoundSocket, type ListenOptions } from "node:net";

/** Where a server listens: a bound socket, its descriptor, or an address. */
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

/** Longest time for which a stopping server waits for the requests of open connections. */
const gentleMsMax = 300;
/** How long a closing listener waits for the first request of fresh connections: a share of the deadline. */
export const gentleMs = (deadlineMs: number): number => Math.min(gentleMsMax, deadlineMs / 20);

/**
 * Stops accepting connections, and resolves once all of them are closed. Unlike the method of node:http, this
 * one leaves idle connections open.
 */
export async function closeListener(server: Server): Promise<void> {
  await shortTurn();
  await new Promise<void>((resolve) => Server.prototype.close.call(server, () => resolve()));
}

const turnsMax = 500;
const shortTurnMs = 0.2;

/**
 * Waits for a quick turn of the event loop, after which hardly any connection waits to be accepted. The
 * system resets connections that wait when the socket closes.
 */
async function shortTurn(): Promise<void> {
  let tookMs = Infinity;
  for (let turn = 0; turn < turnsMax && tookMs > shortTurnMs; turn++) {
    const startMs = performance.now();
    await new Promise<void>((resolve) => setImmediate(resolve));
    tookMs = performance.now() - startMs;
  }
}

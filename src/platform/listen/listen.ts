import type { AddressInfo, BoundSocket, ListenOptions, Server } from "node:net";

/** Where a server listens: a socket that is bound already, or an address. */
export type ListenAt = BoundSocket | Pick<ListenOptions, "host" | "port" | "reusePort">;

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

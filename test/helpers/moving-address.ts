import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export interface MovingAddress {
  /** The same URL, at this address. */
  urlOf(url: string): string;
  /** The target of new connections; undefined: they are refused. `isCut`: those that exist are reset. */
  moveTo(port: number | undefined, isCut: boolean): void;
  close(): Promise<void>;
}

/** An address of a database that moves to another server, as that of a failover does. */
export async function startMovingAddress(port: number): Promise<MovingAddress> {
  let to: number | undefined = port;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    if (to === undefined) return void client.resetAndDestroy();
    const upstream = connect(to, "127.0.0.1");
    for (const [from, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on("error", () => other.destroy());
      from.on("close", () => {
        sockets.delete(from);
        other.destroy();
      });
      from.pipe(other);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port: own } = server.address() as AddressInfo;
  const cut = (): void => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  return {
    urlOf: (url) => {
      const moved = new URL(url);
      moved.port = String(own);
      return moved.href;
    },
    moveTo(next, isCut) {
      to = next;
      if (isCut) cut();
    },
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      cut();
      await closed;
    },
  };
}

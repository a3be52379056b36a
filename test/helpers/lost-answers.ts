import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** Passes the connections of a platform to its PostgreSQL. */
export interface LosingProxy {
  databaseUrl: string;
  /**
   * The next transaction with this text in a statement is committed, and its connection ends before the answer
   * arrives. `isLost` tells whether that has happened.
   */
  loseCommitOf(text: string): { readonly isLost: boolean };
  close(): void;
}

export async function losingProxy(databaseUrl: string): Promise<LosingProxy> {
  const url = new URL(databaseUrl);
  const target = { host: url.hostname, port: Number(url.port) };
  const sockets = new Set<Socket>();
  let wanted: { text: string; isLost: boolean } | undefined;
  const server = createServer((client) => {
    const upstream = connect(target);
    let found: typeof wanted;
    let isLosing = false;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => (sockets.delete(socket), client.destroy(), upstream.destroy()));
    }
    client.on("data", (chunk) => {
      if (wanted !== undefined && !wanted.isLost && chunk.includes(wanted.text)) found = wanted;
      else if (chunk.includes("rollback")) found = undefined;
      isLosing = found !== undefined && chunk.includes("commit");
      upstream.write(chunk);
    });
    upstream.on("data", (chunk) => {
      if (!isLosing) return void client.write(chunk);
      found!.isLost = true;
      client.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url.port = String((server.address() as AddressInfo).port);
  return {
    databaseUrl: url.href,
    loseCommitOf: (text) => (wanted = { text, isLost: false }),
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

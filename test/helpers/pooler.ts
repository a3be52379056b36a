import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export interface Pooler {
  /** The URL of the database through it. */
  url: string;
  close(): Promise<void>;
}

/**
 * Stands before PostgreSQL and drops notifications (messages of type "A"), as a pooler does that gives each
 * transaction another connection: the connection that listens is no client's while a notification comes.
 */
export async function startPooler(databaseUrl: string): Promise<Pooler> {
  const { hostname, port } = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
    }
    client.pipe(upstream);
    let rest = Buffer.alloc(0);
    upstream.on("data", (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= 5) {
        const length = rest.readInt32BE(1) + 1;
        if (rest.length < length) return;
        if (rest[0] !== "A".charCodeAt(0)) client.write(rest.subarray(0, length));
        rest = rest.subarray(length);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port: ownPort } = server.address() as AddressInfo;
  return {
    url: databaseUrl.replace(`:${port}/`, `:${ownPort}/`),
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

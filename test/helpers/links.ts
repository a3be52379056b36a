import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

/** How one direction of a link is: what it delays, by how much that varies, and what share it has to send again. */
export interface Way {
  ms: number;
  jitterMs?: number;
  loss?: number;
}

/** The shortest time that TCP waits before it sends lost bytes again. */
const retransmissionMs = 200;

export interface Link {
  port: number;
  close(): Promise<void>;
}

/**
 * A slow link to a server, as a TCP listener: every byte takes its time in each direction, in order, and a connection takes a
 * round trip to stand. `way` is asked again and again, so that a link may change, and may differ for those who use it.
 */
export async function startLink(
  listen: { host: string; port: number },
  to: { host: string; port: number },
  way: (clientAddress: string) => Way,
): Promise<Link> {
  const sockets = new Set<Socket>();
  const server: Server = createServer({ noDelay: true }, (near) => {
    const { remoteAddress = "" } = near;
    const ask = (): Way => way(remoteAddress.replace("::ffff:", ""));
    const far = connect({ ...to, noDelay: true });
    const handshakeUntil = performance.now() + 2 * delayOf(ask());
    for (const [from, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      let last = 0;
      // Timers that end at about the same time may do so in another order: whichever does, the oldest is done.
      const queue: (() => void)[] = [];
      const later = (act: () => void): void => {
        const start = from === near ? Math.max(performance.now(), handshakeUntil) : performance.now();
        last = Math.max(last, start + delayOf(ask()));
        queue.push(act);
        setTimeout(() => queue.shift()!(), Math.max(0, last - performance.now()));
      };
      from.on("data", (chunk) => later(() => other.destroyed || other.write(chunk)));
      from.on("close", () => {
        sockets.delete(from);
        later(() => other.destroy());
      });
      from.on("error", () => {});
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(listen.port, listen.host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function delayOf({ ms, jitterMs = 0, loss = 0 }: Way): number {
  const jitter = (Math.random() * 2 - 1) * jitterMs;
  return Math.max(0, ms + jitter) + (Math.random() < loss ? retransmissionMs : 0);
}

import { createServer, type AddressInfo, type Socket } from "node:net";
import { connect } from "node:tls";
import type { Random } from "../../name-server/random.ts";
import { randomBytes, spoiled } from "./bytes.ts";
import { noise } from "./http1.ts";

/** Recorded first messages of several kinds of TLS clients. */
export async function clientHellos(): Promise<Buffer[]> {
  const kinds = [
    { servername: "fuzz.example", ALPNProtocols: ["h2", "http/1.1"] },
    { servername: "a.fuzz.example", minVersion: "TLSv1.2", maxVersion: "TLSv1.2" },
    { ALPNProtocols: ["x".repeat(255)] },
  ] as const;
  const hellos: Buffer[] = [];
  for (const kind of kinds) {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const came = new Promise<Buffer>((resolve) =>
      server.once("connection", (socket: Socket) =>
        socket.once("data", (chunk: Buffer) => (resolve(chunk), socket.destroy())),
      ),
    );
    const client = connect({
      port: (server.address() as AddressInfo).port,
      host: "127.0.0.1",
      ...kind,
    } as never);
    client.on("error", () => {});
    hellos.push(await came);
    client.destroy();
    server.close();
  }
  return hellos;
}

/** A record (RFC 8446, 5.1), possibly with a wrong length. */
function record(random: Random, type: number, body: Buffer): Buffer {
  const head = Buffer.from([type, 3, random.pick([1, 3, 3, 9]), 0, 0]);
  head.writeUInt16BE(random.chance(85) ? Math.min(body.length, 65_535) : random.pick([0, 16_385, 65_535]), 3);
  return Buffer.concat([head, body]);
}

/** Messages to a TLS listener that are not a handshake, or an incomplete one. */
export function tlsMessage(random: Random, hellos: readonly Buffer[]): Buffer {
  const hello = random.pick(hellos);
  switch (random.below(6)) {
    case 0:
      return noise(random);
    case 1: // in several records
      return Buffer.concat(
        [hello.subarray(5, 60), hello.subarray(60)].map((part) => record(random, 22, part)),
      );
    case 2:
      return record(random, random.pick([20, 21, 22, 23, 24, 99]), randomBytes(random, random.below(200)));
    case 3:
      return Buffer.concat([hello, randomBytes(random, random.below(300))]);
    default:
      return spoiled(random, hello);
  }
}

import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, expect, it } from "vitest";
import type { Answering } from "./answering.ts";
import { TcpListener, tcpDefaults, type TcpLimits } from "./tcp.ts";

/** Gives messages back as they came. */
const echo = {
  take: (message: Buffer, _length: number, _client: unknown, send: (answer: Buffer) => void) =>
    send(Buffer.from(message)),
} as unknown as Answering;
const message = Buffer.from("0003616263", "hex");
let listener: TcpListener;
afterEach(() => listener.close());

async function open(limits: Partial<TcpLimits>): Promise<() => ReturnType<typeof connect>> {
  listener = new TcpListener(echo, () => false, { ...tcpDefaults, ...limits });
  const { port } = await listener.listen("127.0.0.1", 0, false);
  return () => connect(port, "127.0.0.1").on("error", () => {});
}

it("a connection that brings no whole message is ended, even while bytes come", async () => {
  const connection = (await open({ idleTimeoutMs: 300 }))();
  connection.write(Buffer.from("ffff", "hex"));
  const bytes = setInterval(() => connection.write("a"), 50);
  connection.resume();
  await once(connection, "close");
  clearInterval(bytes);
});

it("one address has only so many connections", async () => {
  const connectTo = await open({ connectionsPerAddressMax: 2 });
  const known = [connectTo(), connectTo()];
  for (const connection of known) {
    connection.write(message);
    expect((await once(connection, "data"))[0]).toEqual(message);
  }
  const third = connectTo();
  third.resume();
  await once(third, "close");
  known[0]!.destroy();
  await once(known[0]!, "close");
  await expect
    .poll(
      async () => {
        const next = connectTo();
        next.write(message);
        const answer = await Promise.race([once(next, "data"), once(next, "close").then(() => [undefined])]);
        next.destroy();
        return answer[0] as Buffer | undefined;
      },
      { timeout: 20_000 },
    )
    .toEqual(message);
});

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import type { Answering } from "../answering.ts";
import { TcpListener, tcpDefaults, type TcpLimits } from "./tcp.ts";

/** Sends each message back unchanged. */
const echo = {
  take: (message: Buffer, _length: number, _client: unknown, send: (answer: Buffer) => void) =>
    send(Buffer.from(message)),
} as unknown as Answering;
const message = Buffer.from("0003616263", "hex");
let listener: TcpListener;
afterEach(() => listener.close());

async function open(limits: Partial<TcpLimits>): Promise<() => ReturnType<typeof connect>> {
  listener = new TcpListener(echo, () => undefined, { ...tcpDefaults, ...limits });
  const { port } = await listener.listen({ host: "127.0.0.1", port: 0 });
  return () => connect(port, "127.0.0.1").on("error", () => {});
}

/**
 * Resolves once the socket is closed. A reset counts too: it happens when the server closes while bytes
 * arrive.
 */
const closed = (socket: Socket) => new Promise<void>((resolve) => socket.once("close", () => resolve()));

it("a connection without a complete message is closed, even while bytes arrive", async () => {
  const connection = (await open({ idleTimeoutMs: 300 }))();
  connection.write(Buffer.from("ffff", "hex"));
  const bytes = setInterval(() => connection.write("a"), 50);
  connection.resume();
  await closed(connection);
  clearInterval(bytes);
});

it("the number of connections from one address is limited", async () => {
  const connectTo = await open({ connectionsPerAddressMax: 2 });
  const known = [connectTo(), connectTo()];
  for (const connection of known) {
    connection.write(message);
    expect((await once(connection, "data"))[0]).toEqual(message);
  }
  const third = connectTo();
  third.resume();
  await closed(third);
  known[0]!.destroy();
  await closed(known[0]!);
  await expect
    .poll(async () => {
      const next = connectTo();
      next.write(message);
      const answer = await Promise.race([
        new Promise<Buffer>((resolve) => next.once("data", resolve)),
        closed(next),
      ]);
      next.destroy();
      return answer;
    })
    .toEqual(message);
});

it("transfers of a connection are served one at a time, and each in a turn of its own", async () => {
  let [served, running, turn] = [0, 0, 0];
  const turns = new Set<number>();
  const ticks = setInterval(() => turn++, 0);
  const seen: number[] = [];
  listener = new TcpListener(echo, async (query, client) => {
    seen.push(++running);
    turns.add(turn);
    await client.send(Buffer.from(query));
    running--;
    setImmediate(() => turn++);
    if (++served === 300) clearInterval(ticks);
  });
  const { port } = await listener.listen({ host: "127.0.0.1", port: 0 });
  const connection = connect(port, "127.0.0.1")
    .on("error", () => {})
    .resume();
  connection.write(Buffer.concat(Array<Buffer>(300).fill(message)));
  await expect.poll(() => served).toBe(300);
  connection.destroy();
  expect(new Set(seen)).toEqual(new Set([1]));
  expect(turns.size).toBeGreaterThan(250);
});

it("a packet with many messages takes many turns", async () => {
  let turn = 0;
  const turns = new Set<number>();
  const answering = {
    take: (_message: Buffer, _length: number, _client: unknown, send: (answer?: Buffer) => void) => {
      if (turns.size === 0 || !turns.has(turn)) setImmediate(() => turn++);
      turns.add(turn);
      send();
    },
  } as unknown as Answering;
  listener = new TcpListener(answering, () => undefined, { ...tcpDefaults, pipelinedMax: 10 });
  const { port } = await listener.listen({ host: "127.0.0.1", port: 0 });
  const connection = connect(port, "127.0.0.1").on("error", () => {});
  connection.write(Buffer.alloc(2 * 10_000));
  await expect.poll(() => turns.size).toBeGreaterThan(900);
  connection.destroy();
});

import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { pino } from "pino";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { ChangeListeners } from "../storage/changes/listeners.ts";
import { endsWithin } from "../util/ends-within.ts";
import { Fleet } from "./fleet.ts";
import { machineMs } from "./machine-clock.ts";
import { MainChannel } from "./main-channel.ts";
import { connectTo, MessageConnection, type FromEdge, type FromMain } from "./protocol.ts";

const logger = pino({ enabled: false });
const change = { kind: "zone", id: "a" } as const;

const stalled: number[] = [];
beforeEach(() => void stalled.splice(0));

function newPath(): string {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "changes.sock");
}

function newFleet(path: string, serving = 0): Fleet {
  const fleet = new Fleet({
    path,
    serving,
    reloadMsMax: 60_000,
    lagSeconds: () => 0,
    dnsAddress: () => "127.0.0.1:53",
    onStalled: (id) => stalled.push(id),
  });
  onTestFinished(() => fleet.close());
  return fleet;
}

async function startFleet(path: string, serving = 0): Promise<Fleet> {
  const fleet = newFleet(path, serving);
  await fleet.listen();
  return fleet;
}

/** The channel of an edge process that joins, and the changes that it gets. */
function newChannel(path: string, reload = async () => {}): { channel: MainChannel; received: string[] } {
  const channel = new MainChannel(path, 1, logger);
  const received: string[] = [];
  const listeners = new ChangeListeners();
  listeners.add(
    async () => void received.push("change"),
    async () => {
      await reload();
      return () => void received.push("reload");
    },
  );
  channel.subscribe(listeners);
  onTestFinished(() => channel.stop());
  return { channel, received };
}

it("a main process that does not listen yet acknowledges a change once edge processes ask before they serve", async () => {
  const broadcast = newFleet(newPath(), 1).broadcast([change]);
  expect(await endsWithin(500, broadcast)).toBe(false);
  await broadcast;
});

describe("an edge process", () => {
  it("reads everything again if another main process starts while it loads", async () => {
    const path = newPath();
    const first = await startFleet(path);
    const { channel, received } = newChannel(path);
    await channel.join();
    first.close();
    const second = await startFleet(path);
    await second.broadcast([change]); // no process has joined, so none receives it
    await channel.caughtUp();
    expect(received).toEqual(["reload"]);
    await second.broadcast([change]);
    expect(received).toEqual(["reload", "change"]);
  });

  it("asks a silent main process once for all requests that wait", async () => {
    const path = newPath();
    let asked = 0;
    let main: MessageConnection<FromEdge, FromMain> | undefined;
    const oldMs = machineMs() - 10_000;
    const server = createServer((socket: Socket) => {
      main = new MessageConnection(socket, ({ say }) => {
        if (say === "hello") main!.send({ do: "join", dns: "", n: 1, at: oldMs });
        if (say === "ready") main!.send({ do: "serve", n: 2, at: oldMs });
        if (say === "ask") asked++;
      });
    }).listen(path);
    onTestFinished(() => void server.close());
    const { channel } = newChannel(path);
    await channel.join();
    await channel.caughtUp();
    expect(channel.isCurrent).toBe(false);
    const requests = Array.from({ length: 100 }, async () => channel.becomesCurrent());
    await expect.poll(() => asked).toBe(1);
    main!.send({ do: "beat", lagSeconds: 0, n: 3, at: machineMs() });
    expect(new Set(await Promise.all(requests))).toEqual(new Set([true]));
    expect(asked).toBe(1);
    channel.stop();
  });

  it("serves while it reads everything again, until a change waits behind that, and is not replaced", async () => {
    const path = newPath();
    const fleet = await startFleet(path);
    const { promise: isRead, resolve: read } = Promise.withResolvers<void>();
    const { channel, received } = newChannel(path, async () => isRead);
    await channel.join();
    await Promise.all([channel.caughtUp(), fleet.serves(1)]);
    await fleet.reload();
    await delay(200);
    expect(channel.isCurrent).toBe(true);
    expect(channel.lagSeconds).toBeGreaterThan(2);
    await fleet.broadcast([change]);
    expect([channel.isCurrent, received]).toEqual([false, []]);
    await fleet.broadcast([change]); // its answer is not awaited
    const current = channel.becomesCurrent();
    expect(await endsWithin(600, current)).toBe(false);
    read();
    expect(await current).toBe(true);
    expect(received).toEqual(["reload", "change", "change"]);
    expect([fleet.serving, stalled]).toEqual([1, []]);
  });

  it("that cannot read its metrics has none, and stays in the fleet", async () => {
    const path = newPath();
    const fleet = await startFleet(path);
    const { channel } = newChannel(path);
    channel.metrics = async () => Promise.reject(new Error("unreadable"));
    await channel.join();
    await Promise.all([channel.caughtUp(), fleet.serves(1)]);
    expect(await fleet.metrics()).toEqual([[]]);
  });
});

describe("a new main process", () => {
  it("that does not listen yet acknowledges a change once earlier edge processes no longer trust their data", async () => {
    const path = newPath();
    const first = await startFleet(path);
    const { channel, received } = newChannel(path);
    await channel.join();
    await Promise.all([channel.caughtUp(), first.serves(1)]);
    first.close();
    const second = newFleet(path, 1);
    await second.broadcast([change]);
    expect(channel.isCurrent).toBe(false);
    expect(received).toEqual([]);
    await second.listen();
    expect(await channel.becomesCurrent()).toBe(true);
    expect(received).toEqual(["reload"]);
  });

  it("delays its first change until earlier edge processes have rejoined, and does not wait for new ones", async () => {
    const path = newPath();
    const fleet = await startFleet(path, 1);
    const { channel } = newChannel(path);
    await channel.join();
    await Promise.all([channel.caughtUp(), fleet.serves(1)]);
    const broadcast = fleet.broadcast([change]);
    expect(await endsWithin(300, broadcast)).toBe(false);
    const old: MessageConnection<FromMain, FromEdge> = new MessageConnection(
      await connectTo(path),
      ({ n, do: order }) => {
        old.send({ say: "done", n });
        if (order === "join") old.send({ say: "ready" });
      },
    );
    old.send({ say: "hello", id: 2, hasServed: true });
    expect(await endsWithin(1000, broadcast)).toBe(true);
    old.end();
  });
});

import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { pino } from "pino";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { ChangeListeners } from "../storage/changes/listeners.ts";
import type { Change } from "../storage/storage.ts";
import { endsWithin } from "../util/ends-within.ts";
import { Fleet } from "./fleet.ts";
import { MainChannel } from "./main-channel.ts";
import { MessageBus } from "./message-bus.ts";
import {
  beatMs,
  channelPath,
  connectTo,
  MessageConnection,
  protocolVersion,
  ringPath,
  silenceMsMax,
  type FromEdge,
  type FromMain,
} from "./protocol.ts";
import { RingWriter } from "./ring.ts";

const logger = pino({ enabled: false });
const change = { kind: "zone", id: "a" } as const;

const stalled: number[] = [];
beforeEach(() => void stalled.splice(0));

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function newFleet(folder: string, { serving = 0, bus = new MessageBus() } = {}): Fleet {
  const fleet = new Fleet({
    folder,
    serving,
    reloadMsMax: 60_000,
    lagSeconds: () => 0,
    dnsAddress: () => "127.0.0.1:53",
    onStalled: (id) => stalled.push(id),
    bus,
  });
  onTestFinished(() => fleet.close());
  return fleet;
}

async function startFleet(folder: string, options = {}): Promise<Fleet> {
  const fleet = newFleet(folder, options);
  await fleet.listen();
  return fleet;
}

interface EdgeOptions {
  reload?: () => Promise<void>;
  apply?: (changes: readonly Change[]) => Promise<void>;
  bus?: MessageBus;
}

/** The channel of an edge process, and what it carries out. */
function newChannel(
  folder: string,
  { reload = async () => {}, apply = async () => {}, bus }: EdgeOptions = {},
): { channel: MainChannel; received: string[] } {
  const channel = new MainChannel(folder, 1, logger);
  const received: string[] = [];
  const listeners = new ChangeListeners();
  listeners.add(
    async (changes) => {
      await apply(changes);
      received.push(changes.length === 1 ? "change" : `${changes.length} changes`);
    },
    async () => {
      await reload();
      return () => void received.push("reload");
    },
  );
  channel.subscribe(listeners);
  if (bus !== undefined) channel.connect(bus);
  onTestFinished(() => channel.stop());
  return { channel, received };
}

/** An edge process that serves. */
async function startChannel(
  folder: string,
  fleet: Fleet,
  options?: EdgeOptions,
): Promise<ReturnType<typeof newChannel>> {
  const started = newChannel(folder, options);
  await started.channel.join();
  await Promise.all([started.channel.caughtUp(), fleet.serves(1)]);
  return started;
}

describe("an edge process", () => {
  it("is not current from the moment of a change on, without a message", async () => {
    const folder = newFolder();
    const fleet = await startFleet(folder);
    const { channel, received } = await startChannel(folder, fleet);
    expect(channel.isCurrent).toBe(true);
    const isAnswered = fleet.broadcast([change]);
    expect(channel.isCurrent).toBe(false);
    await isAnswered;
    expect(await channel.becomesCurrent()).toBe(true);
    expect(received).toEqual(["change"]);
  });

  it("carries out changes without a request", async () => {
    const folder = newFolder();
    const fleet = await startFleet(folder);
    const { received } = await startChannel(folder, fleet);
    await fleet.broadcast([change]);
    await expect.poll(() => received).toEqual(["change"]);
  });

  it("reads everything again if another main process starts while it loads", async () => {
    const folder = newFolder();
    const first = await startFleet(folder);
    const { channel, received } = newChannel(folder);
    await channel.join();
    first.close();
    const second = await startFleet(folder);
    await second.broadcast([change]);
    await channel.caughtUp();
    expect(received).toEqual(["reload", "change"]);
  });

  it("serves while it reads everything again, until a change waits behind that, and is not replaced", async () => {
    const folder = newFolder();
    const fleet = await startFleet(folder);
    const { promise: isRead, resolve: read } = Promise.withResolvers<void>();
    const { channel, received } = await startChannel(folder, fleet, { reload: async () => isRead });
    fleet.reload();
    await expect.poll(() => channel.lagSeconds).toBeGreaterThan(2);
    expect(channel.isCurrent).toBe(true);
    await fleet.broadcast([change]);
    expect([channel.isCurrent, received]).toEqual([false, []]);
    const current = channel.becomesCurrent();
    expect(await endsWithin(600, current)).toBe(false);
    read();
    expect(await current).toBe(true);
    expect(received).toEqual(["reload", "change"]);
    expect([fleet.serving, stalled]).toEqual([1, []]);
  });

  it("that cannot carry out a change reads everything again until it can", async () => {
    const folder = newFolder();
    const fleet = await startFleet(folder);
    let faults = 3;
    const fail = async (): Promise<void> => {
      if (faults-- > 0) throw new Error("no database");
    };
    const { channel, received } = await startChannel(folder, fleet, { apply: fail, reload: fail });
    await fleet.broadcast([change]);
    expect(await channel.becomesCurrent()).toBe(true);
    expect(received).toEqual(["reload"]);
  });

  it("that lags by more than the ring holds reads everything again, and gets main's messages again", async () => {
    const folder = newFolder();
    const [inMain, inEdge] = [new MessageBus(), new MessageBus()];
    let state = "";
    const told: unknown[] = [];
    inMain.forJoiners("state", () => state);
    inEdge.subscribe("state", (value) => void told.push(value));
    const fleet = await startFleet(folder, { bus: inMain });
    const { promise: isDone, resolve: go } = Promise.withResolvers<void>();
    const { channel, received } = await startChannel(folder, fleet, {
      apply: async () => isDone,
      bus: inEdge,
    });
    await fleet.broadcast([change]);
    const notCurrent = channel.becomesCurrent();
    state = "last";
    for (let n = 0; n < 10; n++) await inMain.publish("state", "x".repeat(200_000));
    go();
    expect(await notCurrent).toBe(true);
    expect(await channel.becomesCurrent()).toBe(true);
    expect(received).toEqual(["change", "reload"]);
    await expect.poll(() => told).toEqual(["", "last"]);
  });

  it("gets a message that is too long for the ring", async () => {
    const folder = newFolder();
    const [inMain, inEdge] = [new MessageBus(), new MessageBus()];
    const long = "x".repeat(1024 * 1024);
    let state = "";
    const told: string[] = [];
    inMain.forJoiners("state", () => state);
    inEdge.subscribe<string>("state", (value) => void told.push(value));
    const fleet = await startFleet(folder, { bus: inMain });
    await startChannel(folder, fleet, { bus: inEdge });
    state = long;
    await inMain.publish("state", long);
    await expect.poll(() => told.at(-1) === long).toBe(true);
  });

  it("that has loaded for long is not taken out when it serves", async () => {
    const folder = newFolder();
    const fleet = await startFleet(folder);
    const { channel } = newChannel(folder);
    await channel.join();
    await delay(silenceMsMax + 2 * beatMs);
    await Promise.all([channel.caughtUp(), fleet.serves(1)]);
    await delay(2 * beatMs);
    expect([fleet.serving, stalled]).toEqual([1, []]);
  });

  it("that does not get on is taken out, and serves nothing", async () => {
    const folder = newFolder();
    const fleet = await startFleet(folder);
    const { channel } = await startChannel(folder, fleet, { apply: async () => new Promise(() => {}) });
    await fleet.broadcast([change]);
    await expect.poll(() => stalled).toEqual([1]);
    expect(channel.isCurrent).toBe(false);
  });

  it("serves nothing once a main process of another version has answered it", async () => {
    const folder = newFolder();
    const fleet = await startFleet(folder);
    const { channel } = await startChannel(folder, fleet);
    fleet.close();
    const server = createServer((socket: Socket) => {
      const main: MessageConnection<FromEdge, object> = new MessageConnection(socket, ({ say }) => {
        if (say === "hello") main.send({ do: "join", dns: "", n: 1, at: 1 });
      });
    });
    rmSync(channelPath(folder), { force: true });
    server.listen(channelPath(folder));
    onTestFinished(() => void server.close());
    await expect.poll(() => channel.isCurrent).toBe(false);
    expect(await channel.becomesCurrent()).toBe(false);
    const { channel: late } = newChannel(folder);
    await expect(late.join()).rejects.toThrow("restart the node");
  });
});

describe("many changes", () => {
  const many: Change[] = Array.from({ length: 1200 }, (_, n) => ({ kind: "zone", id: `zone-${n}` }));

  it("are carried out before they are due, so no request waits for them", async () => {
    const folder = newFolder();
    const fleet = await startFleet(folder);
    let wasCurrent = true;
    const { channel, received } = await startChannel(folder, fleet, {
      apply: async () => void (wasCurrent &&= channel.isCurrent),
    });
    await fleet.broadcast(many);
    expect(received).toEqual(["500 changes", "500 changes", "200 changes"]);
    expect([wasCurrent, channel.isCurrent]).toEqual([true, true]);
  });

  it("are due after two seconds in an edge process that does not carry them out", async () => {
    const folder = newFolder();
    const fleet = await startFleet(folder);
    const { channel } = await startChannel(folder, fleet, { apply: async () => new Promise(() => {}) });
    await fleet.broadcast(many);
    expect(channel.isCurrent).toBe(false);
  });
});

describe("a new main process", () => {
  it("that does not listen yet makes edge processes read everything before they serve with its change", async () => {
    const folder = newFolder();
    const first = await startFleet(folder);
    const { channel, received } = await startChannel(folder, first);
    first.close();
    const second = newFleet(folder, { serving: 1 });
    expect(channel.isCurrent).toBe(true);
    await second.broadcast([change]);
    expect(channel.isCurrent).toBe(false);
    expect(await channel.becomesCurrent()).toBe(true);
    expect(received).toEqual(["reload"]);
    await second.listen();
    await second.serves(1);
    expect(received).toEqual(["reload", "reload"]);
  });

  it("does not start beside edge processes that do not know the ring", () => {
    expect(() => newFleet(newFolder(), { serving: 1 })).toThrow("restart the node");
  });

  it("does not count an edge process of another version", async () => {
    const folder = newFolder();
    const fleet = await startFleet(folder);
    const answers: FromMain[] = [];
    const old: MessageConnection<FromMain, object> = new MessageConnection(
      await connectTo(channelPath(folder)),
      (message) => {
        answers.push(message);
        old.send({ say: "ready" });
      },
    );
    onTestFinished(() => old.end());
    old.send({ say: "hello", id: 2, hasServed: true });
    await expect.poll(() => answers.length).toBe(1);
    expect(answers[0]).toMatchObject({ do: "join", version: protocolVersion });
    expect(fleet.serving).toBe(0);
  });

  it("goes on behind the last line of the ring", async () => {
    const folder = newFolder();
    const first = await startFleet(folder);
    await first.broadcast([change]);
    const { end } = new RingWriter(ringPath(folder));
    expect(end).toBeGreaterThan(0);
    await startFleet(folder);
    expect(new RingWriter(ringPath(folder)).end).toBeGreaterThan(end);
  });
});

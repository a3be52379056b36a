import { setTimeout as delay } from "node:timers/promises";
import { Client } from "pg";
import type { Random } from "../name-server/random.ts";
import type { ChaosNode, Platform } from "./platform.ts";
import { calm } from "./store-process.ts";

/** One thing that goes wrong, for a while, with one part of the platform. */
export interface Disturbance {
  name: string;
  /** The part; parts are disturbed one at a time each. */
  part: string;
  run(): Promise<void>;
}

export function disturbancesOf(platform: Platform, random: Random): Disturbance[] {
  const between = (low: number, high: number): number => low + random.below(high - low);
  const { postgres, store, nodes } = platform;
  const whileStore = async (weather: Partial<typeof calm>, ms: number): Promise<void> => {
    await store.set({ ...calm, ...weather });
    await delay(ms);
    await store.set(calm);
  };
  return [
    ...nodes.flatMap((node) => ofNode(node, platform, between)),
    {
      name: "database killed",
      part: "database",
      async run() {
        await postgres.kill();
        await postgres.start();
      },
    },
    {
      name: "database away",
      part: "database",
      async run() {
        await postgres.crash();
        await delay(between(3000, 30_000));
        await postgres.start();
      },
    },
    {
      name: "database stands still",
      part: "database",
      async run() {
        postgres.pause();
        await delay(between(3000, 20_000));
        postgres.resume();
      },
    },
    {
      name: "slow store",
      part: "store",
      run: () => whileStore({ delayMsMax: between(500, 4000) }, between(5000, 15_000)),
    },
    {
      name: "failing store",
      part: "store",
      run: () => whileStore({ faultPercent: between(20, 90) }, between(5000, 15_000)),
    },
    { name: "store away", part: "store", run: () => whileStore({ isAway: true }, between(3000, 15_000)) },
  ];
}

function ofNode(
  node: ChaosNode,
  { databaseUrl }: Platform,
  between: (low: number, high: number) => number,
): Disturbance[] {
  const part = `node ${node.name}`;
  const { disk } = node.folder;
  const all: Disturbance[] = [
    {
      name: "node killed",
      part,
      async run() {
        await node.kill();
        await delay(between(0, 3000));
        await node.start();
      },
    },
    {
      name: "node stopped",
      part,
      async run() {
        await node.terminate();
        await delay(between(0, 3000));
        await node.start();
      },
    },
    {
      name: "node stands still",
      part,
      async run() {
        node.signal("SIGSTOP");
        await delay(between(3000, 15_000));
        await forgetChanges(databaseUrl);
        node.signal("SIGCONT");
      },
    },
  ];
  if (disk !== undefined)
    all.push({
      name: "disk full",
      part,
      async run() {
        disk.fill();
        await delay(between(3000, 12_000));
        disk.heal();
      },
    });
  return all;
}

/** Deletes the log of changes, so that a node that stood still cannot follow it. Nothing, if the database is away. */
async function forgetChanges(databaseUrl: string): Promise<void> {
  const client = new Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: 3000,
    query_timeout: 3000,
  });
  client.on("error", () => {});
  try {
    await client.connect();
    await client.query("delete from changes");
  } catch {
    // the next time
  } finally {
    await client.end().catch(() => {});
  }
}

/** Disturbs until the time is over: each kind at least once in a shuffled round, one or two at a time. */
export async function disturb(
  all: readonly Disturbance[],
  random: Random,
  {
    isOver,
    calmMsMax,
    report,
    healed,
  }: {
    isOver: () => boolean;
    /** The longest time between two. */
    calmMsMax: number;
    report: (line: string) => void;
    /** Resolves when all nodes are ready again. */
    healed: () => Promise<void>;
  },
): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  let round: Disturbance[] = [];
  const next = (busy?: string): Disturbance => {
    if (round.length === 0) round = shuffled(all, random);
    const at = round.findIndex(({ part }) => part !== busy);
    return at < 0 ? round.shift()! : round.splice(at, 1)[0]!;
  };
  while (!isOver() || all.some(({ name }) => !counts.has(name))) {
    const first = next();
    const now = [first];
    if (random.chance(35)) {
      const second = next(first.part);
      if (second.part === first.part) round.unshift(second);
      else now.push(second);
    }
    report(now.map(({ name, part }) => `${name} (${part})`).join(", "));
    for (const { name } of now) counts.set(name, (counts.get(name) ?? 0) + 1);
    await Promise.all(now.map(async (disturbance) => disturbance.run()));
    // Some of the next ones come before the nodes are ready again.
    if (random.chance(60)) await healed();
    await delay(random.below(calmMsMax));
  }
  return counts;
}

function shuffled<T>(list: readonly T[], random: Random): T[] {
  const left = [...list];
  return list.map(() => left.splice(random.below(left.length), 1)[0]!);
}

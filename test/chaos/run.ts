import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { callerOf, type Call } from "../helpers/writes.ts";
import { Random } from "../name-server/random.ts";
import { disturb, disturbancesOf, type Disturbance } from "./disturbances.ts";
import { Facts } from "./facts.ts";
import { kindsOf, prepare } from "./kinds.ts";
import { callMsMax, startPlatform, type ChaosNode, type Platform } from "./platform.ts";
import { Things } from "./things.ts";
import { Tally } from "./tally.ts";
import { verify, type Verdict } from "./verify.ts";
import { Watch } from "./watch.ts";

export interface ChaosOptions {
  seconds: number;
  seed: number;
  /** The pause of each writer and reader after a call, in milliseconds. */
  pauseMs: number;
  /** The longest time between two disturbances, in milliseconds. */
  calmMsMax: number;
  writers: number;
  readers: number;
  /** Things of each kind that are written to at a time. */
  perKind: number;
  /** Disturbances to choose from; default: all. */
  only?: (disturbance: Disturbance) => boolean;
  report?: (line: string) => void;
}

export interface ChaosReport extends Verdict {
  /** Nothing was lost, wrong, too old or different, and nothing failed that must not. Else the logs are kept. */
  isClean: boolean;
  logs: string;
  sent: number;
  acknowledged: number;
  causes: Record<string, number>;
  /** Answers that a valid write must not get. */
  faults: string[];
  disturbances: Record<string, number>;
  reads: number;
  unanswered: number;
  /** Reads that showed an older state than the promise allows, of nodes that reported to be ready. */
  stale: string[];
  /** The oldest state that a ready node has shown, in milliseconds. */
  lagMsMax: number;
  /** The longest time in which a node was not ready, in seconds, and which. */
  longestUnready: string;
  /** The longest time from the end of a disturbance until both nodes were ready. */
  secondsToReady: number;
}

/** Disturbs two nodes that share a database and a store, and compares what they say with what was acknowledged. */
export async function nodesChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { report = () => {} } = options;
  const origin = createServer((request, response) => response.end(request.headers.host));
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  const platform = await startPlatform();
  const tally = new Tally();
  const facts: Facts[] = [];
  for (const node of platform.nodes) facts.push(await Facts.of(node, tally));
  const [first] = platform.nodes;
  const { port } = origin.address() as AddressInfo;
  const ground = await prepare(callerOf(first.ready.api, callMsMax), first.ready.account_id, port);
  const kinds = kindsOf({ ...ground, accountHash: first.ready.account_hash });
  const things = new Things(kinds, tally, options.perKind);
  const watch = new Watch(platform.nodes);
  report("everything is up");

  const end = performance.now() + options.seconds * 1000;
  const isOver = (): boolean => performance.now() >= end;
  let isDone = false;
  const load = startLoad({ platform, things, facts, options, isOver: () => isDone });
  const random = new Random(options.seed);
  const chosen = disturbancesOf(platform, random).filter(options.only ?? (() => true));
  const counts = await disturb(chosen, random, {
    isOver,
    calmMsMax: options.calmMsMax,
    report,
    healed: () => watch.measure(),
  });
  await watch.measure();
  isDone = true;
  await load;
  report("all disturbances are over");
  const verdict = await verify(platform, things, facts);
  watch.stop();
  for (const node of platform.nodes) await node.terminate();
  verdict.process.push(...platform.nodes.flatMap((node) => node.faults));
  origin.close();
  const { sent, acknowledged, causes, faults } = tally;
  const { stale } = things.reads;
  const found = [
    verdict.lost,
    verdict.wrong,
    things.wrong,
    verdict.different,
    verdict.process,
    faults,
    stale,
  ];
  const isClean = found.every((each) => each.length === 0);
  await platform.stop(!isClean);
  return {
    ...verdict,
    isClean,
    logs: platform.folder,
    sent,
    acknowledged,
    causes: Object.fromEntries(causes),
    faults,
    disturbances: Object.fromEntries(counts),
    ...things.reads,
    wrong: [...things.wrong, ...verdict.wrong],
    longestUnready: watch.longest(),
    secondsToReady: watch.secondsToReady,
  };
}

interface Load {
  platform: Platform;
  things: Things;
  facts: readonly Facts[];
  options: ChaosOptions;
  isOver: () => boolean;
}

/** Writers and readers, until the time is over. */
async function startLoad({ platform, things, facts, options, isOver }: Load): Promise<void> {
  const { pauseMs, seed } = options;
  const calls = new Map<ChaosNode, Call>(
    platform.nodes.map((node) => [node, callerOf(node.ready.api, callMsMax)]),
  );
  const repeat = async (
    index: number,
    work: (node: ChaosNode, call: Call, random: Random) => Promise<void>,
  ) => {
    const random = new Random(seed * 1000 + index);
    while (!isOver()) {
      const node = random.pick(platform.nodes);
      await work(node, calls.get(node)!, random);
      await delay(pauseMs);
    }
  };
  const writers = Array.from({ length: options.writers }, (_, i) =>
    repeat(i, (node, call, random) => things.writeOne(node, call, random)),
  );
  const readers = Array.from({ length: options.readers }, (_, i) =>
    repeat(100 + i, (node, call, random) => things.readOne(node, call, random)),
  );
  await Promise.all([...writers, ...readers, ...facts.map((each) => each.run(isOver, pauseMs))]);
}

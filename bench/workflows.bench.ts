import { open } from "node:fs/promises";
import { join } from "node:path";
import {
  installPeers,
  startDbos,
  startFloor,
  startMiniflare,
  startOurs,
  startRestate,
  type WorkflowEngine,
} from "./workflows-lib.ts";
import { atLeast, atMost, median, pairedRatio, printGoals, printTable, type Goal } from "./lib/measure.ts";

/**
 * Compares the same workflows of 1 and of 10 steps on four engines and without one: time from start to result, and
 * workflows per second. For reference: the time to flush four kilobytes to the disk.
 */
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 7);
const latencyRuns = { 1: 60, 10: 30 } as const;
const loadSeconds = 2;
const concurrencies = [16, 128] as const;

interface Figures {
  p50: Record<1 | 10, number>;
  p99: Record<1 | 10, number>;
  perSecond: Record<16 | 128, number>;
  cpuMsPerStep: Record<16 | 128, number>;
}

const blank = (): Figures => ({
  p50: { 1: 0, 10: 0 },
  p99: { 1: 0, 10: 0 },
  perSecond: { 16: 0, 128: 0 },
  cpuMsPerStep: { 16: 0, 128: 0 },
});

/** One workflow at a time, on each engine in turn, so that other load of the machine affects all alike. */
async function latencies(engines: readonly WorkflowEngine[], round: Map<string, Figures>): Promise<number> {
  const flushes: number[] = [];
  for (const steps of [1, 10] as const) {
    const times = new Map<string, number[]>(engines.map(({ name }) => [name, []]));
    for (let i = 0; i < latencyRuns[steps]; i++) {
      for (const engine of engines) {
        const start = performance.now();
        await engine.run(steps);
        times.get(engine.name)!.push(performance.now() - start);
      }
      const start = performance.now();
      await file.write(page);
      await file.datasync();
      flushes.push(performance.now() - start);
    }
    for (const [name, took] of times) {
      took.sort((a, b) => a - b);
      round.get(name)!.p50[steps] = median(took);
      round.get(name)!.p99[steps] = took[Math.floor(took.length * 0.99)]!;
    }
  }
  return median(flushes);
}

async function load(engine: WorkflowEngine, concurrency: 16 | 128, figures: Figures): Promise<void> {
  const cpu = engine.cpuMicroseconds();
  const start = performance.now();
  const end = start + loadSeconds * 1000;
  let done = 0;
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (performance.now() < end) {
        await engine.run(10);
        done++;
      }
    }),
  );
  figures.perSecond[concurrency] = done / ((performance.now() - start) / 1000);
  figures.cpuMsPerStep[concurrency] = (engine.cpuMicroseconds() - cpu) / 1000 / (done * 10);
}

installPeers();
const ours = await startOurs();
const engines: readonly WorkflowEngine[] = [
  ours,
  await startRestate(),
  await startDbos(),
  await startMiniflare(),
  await startFloor(),
];
const file = await open(join(ours.dataDir, "bench-flushes"), "w");
const page = new Uint8Array(4096);
const flushMs: number[] = [];
const measured = new Map<string, Figures[]>(engines.map(({ name }) => [name, []]));
for (let round = -1; round < rounds; round++) {
  const figures = new Map(engines.map(({ name }) => [name, blank()]));
  const order = round % 2 === 0 ? engines : engines.toReversed();
  const flush = await latencies(order, figures);
  for (const concurrency of concurrencies)
    for (const engine of order) await load(engine, concurrency, figures.get(engine.name)!);
  if (round < 0) continue; // the first one warms up
  for (const [name, each] of figures) measured.get(name)!.push(each);
  flushMs.push(flush);
}
await file.close();
for (const engine of engines) await engine.stop();

const of = (name: string, pick: (figures: Figures) => number): number[] => measured.get(name)!.map(pick);
printTable(
  [
    "engine",
    "1 step p50 ms",
    "p99",
    "10 steps p50 ms",
    "p99",
    "wf/s c=16",
    "wf/s c=128",
    "CPU ms/step c=16",
    "c=128",
  ],
  engines.map(({ name }) => [
    name,
    ...[
      (f: Figures) => f.p50[1],
      (f: Figures) => f.p99[1],
      (f: Figures) => f.p50[10],
      (f: Figures) => f.p99[10],
      (f: Figures) => f.perSecond[16],
      (f: Figures) => f.perSecond[128],
      (f: Figures) => f.cpuMsPerStep[16],
      (f: Figures) => f.cpuMsPerStep[128],
    ].map((pick) => median(of(name, pick))),
  ]),
);
for (const { name, durability } of engines) process.stdout.write(`${name}: ${durability}\n`);
const flush = median(flushMs);
process.stdout.write(`4 KiB to the disk, p50: ${flush.toFixed(2)} ms\n`);
const ratio = (other: string, pick: (figures: Figures) => number): number =>
  pairedRatio(of("selvedge", pick), of(other, pick));
const goals: Goal[] = [];
const compare = (
  goal: string,
  figure: string,
  is: typeof atMost,
  pick: (figures: Figures) => number,
  bounds: Record<string, number>,
): void => {
  for (const [other, bound] of Object.entries(bounds))
    goals.push(is(`${goal} ${figure}: ours / ${other}`, ratio(other, pick), bound));
};
compare("G1", "start to done, 1 step, p50", atMost, (f) => f.p50[1], { restate: 0.6, miniflare: 0.3 });
compare("G2", "start to done, 10 steps, p50", atMost, (f) => f.p50[10], { restate: 0.7 });
const commits = 12;
const ownMs = 10;
goals.push(
  atMost(
    `G2 start to done, 10 steps, p50 ms: ${commits} flushes and ${ownMs} ms`,
    median(of("selvedge", (f) => f.p50[10])),
    Math.round((commits * flush + ownMs) * 10) / 10,
  ),
);
compare("G3", "workflows per second, c=16", atLeast, (f) => f.perSecond[16], {
  restate: 1.6,
  dbos: 3,
  miniflare: 8,
});
compare("G3", "workflows per second, c=128", atLeast, (f) => f.perSecond[128], {
  restate: 1.3,
  dbos: 3,
  miniflare: 8,
});
for (const concurrency of concurrencies)
  compare("G4", `CPU per step, c=${concurrency}`, atMost, (f) => f.cpuMsPerStep[concurrency], {
    restate: 0.7,
    "bare RPC": 2.5,
  });
printGoals(goals);

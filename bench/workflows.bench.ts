import { installPeers, startDbos, startOurs, startRestate, type WorkflowEngine } from "./workflows-lib.ts";
import { atLeast, atMost, median, pairedRatio, printGoals, printTable, type Goal } from "./lib/measure.ts";

/** The same workflows of 1 and of 10 steps on three engines, in turns: from their start to their result, and how many in a second. */
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

/** One workflow at a time, on each engine in turn, so that what else the machine does is the same for all. */
async function latencies(engines: readonly WorkflowEngine[], round: Map<string, Figures>): Promise<void> {
  for (const steps of [1, 10] as const) {
    const times = new Map<string, number[]>(engines.map(({ name }) => [name, []]));
    for (let i = 0; i < latencyRuns[steps]; i++) {
      for (const engine of engines) {
        const start = performance.now();
        await engine.run(steps);
        times.get(engine.name)!.push(performance.now() - start);
      }
    }
    for (const [name, took] of times) {
      took.sort((a, b) => a - b);
      round.get(name)!.p50[steps] = median(took);
      round.get(name)!.p99[steps] = took[Math.floor(took.length * 0.99)]!;
    }
  }
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
const engines = [await startOurs(), await startRestate(), await startDbos()] as const;
const measured = new Map<string, Figures[]>(engines.map(({ name }) => [name, []]));
for (let round = -1; round < rounds; round++) {
  const figures = new Map(engines.map(({ name }) => [name, blank()]));
  const order = round % 2 === 0 ? engines : engines.toReversed();
  await latencies(order, figures);
  for (const concurrency of concurrencies)
    for (const engine of order) await load(engine, concurrency, figures.get(engine.name)!);
  if (round < 0) continue; // the first one warms up
  for (const [name, each] of figures) measured.get(name)!.push(each);
}
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
const ratio = (other: string, pick: (figures: Figures) => number): number =>
  pairedRatio(of("selvedge", pick), of(other, pick));
const goals: Goal[] = [
  atMost(
    "start to done, 1 step, p50: ours / restate",
    ratio("restate", (f) => f.p50[1]),
    0.6,
  ),
  atMost(
    "start to done, 10 steps, p50: ours / restate",
    ratio("restate", (f) => f.p50[10]),
    0.7,
  ),
  atLeast(
    "workflows per second, c=16: ours / restate",
    ratio("restate", (f) => f.perSecond[16]),
    1.6,
  ),
  atLeast(
    "workflows per second, c=128: ours / restate",
    ratio("restate", (f) => f.perSecond[128]),
    1.3,
  ),
  atLeast(
    "workflows per second, c=16: ours / dbos",
    ratio("dbos", (f) => f.perSecond[16]),
    3,
  ),
  atLeast(
    "workflows per second, c=128: ours / dbos",
    ratio("dbos", (f) => f.perSecond[128]),
    3,
  ),
  atMost(
    "CPU per step, c=16: ours / restate",
    ratio("restate", (f) => f.cpuMsPerStep[16]),
    0.7,
  ),
  atMost(
    "CPU per step, c=128: ours / restate",
    ratio("restate", (f) => f.cpuMsPerStep[128]),
    0.7,
  ),
];
printGoals(goals);

import { installPeers, startDbos, startOurs, startRestate, type WorkflowEngine } from "./workflows-lib.ts";
import { atLeast, atMost, median, pairedRatio, printGoals, printTable, type Goal } from "./lib/measure.ts";

/** The same workflows of 1 and of 10 steps on three engines, in turns: from their start to their result, and how many in a second. */
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 5);
const latencyRuns = { 1: 60, 10: 30 } as const;
const loadSeconds = 3;
const concurrencies = [16, 128] as const;

interface Figures {
  p50: Record<1 | 10, number>;
  p99: Record<1 | 10, number>;
  perSecond: Record<16 | 128, number>;
  cpuMsPerStep: Record<16 | 128, number>;
}

async function measure(engine: WorkflowEngine): Promise<Figures> {
  const figures: Figures = {
    p50: { 1: 0, 10: 0 },
    p99: { 1: 0, 10: 0 },
    perSecond: { 16: 0, 128: 0 },
    cpuMsPerStep: { 16: 0, 128: 0 },
  };
  for (const steps of [1, 10] as const) {
    const times: number[] = [];
    for (let i = 0; i < latencyRuns[steps]; i++) {
      const start = performance.now();
      await engine.run(steps);
      times.push(performance.now() - start);
    }
    times.sort((a, b) => a - b);
    figures.p50[steps] = median(times);
    figures.p99[steps] = times[Math.floor(times.length * 0.99)]!;
  }
  for (const concurrency of concurrencies) {
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
  return figures;
}

installPeers();
const engines = [await startOurs(), await startRestate(), await startDbos()] as const;
const measured = new Map<string, Figures[]>(engines.map(({ name }) => [name, []]));
for (let round = -1; round < rounds; round++) {
  for (const engine of round % 2 === 0 ? engines : [...engines].toReversed()) {
    const figures = await measure(engine);
    if (round >= 0) measured.get(engine.name)!.push(figures); // the first one warms up
  }
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

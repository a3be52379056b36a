import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { atMost, printGoals, printTable, reported, residentMegabytes } from "./lib/measure.ts";
import { startOurs, tree } from "./workflows-lib.ts";

/**
 * A million sleeping instances in SQLite, all created over the API: memory of the processes, and the time after kill -9
 * and a restart until due instances wake on time again. They are due at 500 a second. The platform keeps those of the
 * next ten minutes in memory: 300,000.
 */
const sleepers = Number(process.env["BENCH_SLEEPERS"] ?? 1_000_000);
const batch = 100;
const batchesAtOnce = 4;
const wakesPerSecond = 500;
const onTimeMs = 300;
const wakesMs = 15_000;
/** The time to create this many predicts the time for the rest; they wake long after. */
const first = Math.min(20_000, sleepers / 2);
/** Creates this many at a time: instances that do not sleep yet are queued, and the queue is limited. */
const portion = 20_000;
const reserveMs = 30_000;
const restMs = 10_000;
const dayMs = 86_400_000;

const ours = await startOurs(
  ["--workflow-cells", "1"],
  `export class Sleeper extends WorkflowEntrypoint {
  async run(event, step) {
    const { at } = event.payload;
    await step.sleepUntil("until", at);
    return step.do("wake", async () => [at, Date.now() - at]);
  }
}`,
  ["Sleeper"],
);
const path = "/workflows/Sleeper/instances";
const memory = (): number => tree(ours.pid).reduce((sum, pid) => sum + residentMegabytes(pid), 0);

/** Creates the instances from one index to another; resolves when all of them sleep. */
async function create(from: number, to: number, at: (index: number) => number): Promise<void> {
  for (let start = from; start < to; start += portion) {
    const end = Math.min(start + portion, to);
    let next = start;
    const make = async (): Promise<void> => {
      while (next < end) {
        const index = next;
        next += batch;
        const bodies = Array.from({ length: batch }, (_, i) => ({ params: { at: at(index + i) } }));
        await ours.call("POST", `${path}/batch`, bodies);
      }
    };
    await Promise.all(Array.from({ length: batchesAtOnce }, make));
    await asleep(end === to ? to : start);
  }
}
async function asleep(count: number): Promise<void> {
  for (;;) {
    const { instances } = await ours.call<{ instances: Record<string, number> }>("GET", "/workflows/Sleeper");
    const { waiting = 0, complete = 0 } = instances;
    if (waiting + complete >= count) return;
    await delay(1000);
  }
}

const startedAt = Date.now();
await create(0, first, () => startedAt + dayMs);
const perSecond = first / ((Date.now() - startedAt) / 1000);
const firstWakeAt = Date.now() + ((sleepers - first) / perSecond) * 1000 * 1.2 + reserveMs + restMs;
const at = (index: number): number => Math.round(firstWakeAt + ((index - first) * 1000) / wakesPerSecond);
const half = first + Math.floor((sleepers - first) / 2 / batch) * batch;
await create(first, half, at);
await delay(restMs);
const atHalf = memory();
await create(half, sleepers, at);
const creationSeconds = (Date.now() - startedAt - restMs) / 1000;
if (Date.now() + restMs > firstWakeAt) throw new Error("Creating the instances took longer than expected");
await delay(restMs);
const atAll = memory();

// Some are due while nothing runs.
await delay(Math.max(0, firstWakeAt - Date.now()));
await ours.kill();
const restartedAt = Date.now();
await ours.restart();
const readySeconds = (Date.now() - restartedAt) / 1000;
await delay(restartedAt + wakesMs - Date.now());
const afterRestart = memory();
const database = new DatabaseSync(join(ours.dataDir, "selvedge.db"), { readOnly: true });
const wakes = (
  database.prepare("select value from workflow_journal where key = 'do:wake-1' order by seq").all() as {
    value: string;
  }[]
)
  .map(({ value }) => JSON.parse(value.slice(1)) as [due: number, lateMs: number])
  .toSorted(([a], [b]) => a - b);
database.close();
await ours.stop();

const last = wakes.findLast(([, lateMs]) => lateMs > onTimeMs);
const refillSeconds = ((last?.[0] ?? restartedAt) + (last === undefined ? 0 : last[1]) - restartedAt) / 1000;
const later = wakes.filter(([due]) => due > restartedAt + 2000).map(([, lateMs]) => lateMs);
const p99 = later.toSorted((a, b) => a - b)[Math.floor((later.length - 1) * 0.99)] ?? Infinity;
printTable(
  ["asleep", "all processes, MB"],
  [
    [String(half), atHalf],
    [String(sleepers), atAll],
    [`${sleepers}, ${wakesMs / 1000} s after a new start`, afterRestart],
  ],
);
printGoals([
  reported("created and come to their sleep, seconds", creationSeconds),
  reported("the same, per second", sleepers / creationSeconds),
  atMost(`G7 MB of all processes, ${sleepers} asleep`, Math.max(atAll, afterRestart), 1000),
  atMost("G7 KB more for each, from half of them to all", ((atAll - atHalf) * 1024) / (sleepers - half), 2),
  reported("G7 start to ready, seconds", readySeconds),
  atMost(`G7 start to all waking within ${onTimeMs} ms, seconds`, refillSeconds, 2),
  reported("woken since the start", wakes.length),
  reported("lateness p99 ms, of those due 2 s after the start and later", p99),
]);

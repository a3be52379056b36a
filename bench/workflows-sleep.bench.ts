import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { atMost, median, printGoals, printTable, reported, residentMegabytes } from "./lib/measure.ts";
import { installPeers, startDbos, startOurs, startRestate, tree } from "./workflows-lib.ts";

/**
 * Ten thousand sleeping instances: their memory here, on Restate and on DBOS; their lateness when 500 a second wake,
 * here and on Restate; and listing a hundred thousand instances.
 */
const sleepers = Number(process.env["BENCH_SLEEPERS"] ?? 10_000);
const stored = Number(process.env["BENCH_STORED"] ?? 100_000);
const wakesPerSecond = 500;
const asleepBeforeWakeMs = 5000;
/** Time for the garbage of the first instances to be collected. */
const restMs = 30_000;
/** From the first creation to the first wake: time for garbage to be collected, as when instances sleep for long. */
const bedtimeMs = Math.max(60_000, sleepers * 10);

const ours = await startOurs(
  ["--workflow-cells", "1"],
  `export class Sleeper extends WorkflowEntrypoint {
  async run(event, step) {
    await step.sleepUntil("until", event.payload.at);
    return step.do("late", async () => Date.now() - event.payload.at);
  }
}
export class Few extends One {}
export class Many extends One {}`,
  ["Sleeper", "Few", "Many"],
);
const database = new DatabaseSync(join(ours.dataDir, "selvedge.db"), { readOnly: true });
const path = "/workflows/Sleeper/instances";
const counts = async (): Promise<Record<string, number>> =>
  (await ours.call<{ instances: Record<string, number> }>("GET", "/workflows/Sleeper")).instances;
async function until(isSo: (counts: Record<string, number>) => boolean): Promise<void> {
  while (!isSo(await counts())) await delay(250);
}
const memory = (): { engine: number; cells: number } => {
  const [engine, ...others] = tree(ours.pid).map(residentMegabytes);
  return { engine: engine!, cells: others.reduce((sum, each) => sum + each, 0) };
};
async function create(count: number, at: (index: number) => number): Promise<number> {
  const start = performance.now();
  for (let made = 0; made < count; made += 100)
    await ours.call(
      "POST",
      `${path}/batch`,
      Array.from({ length: 100 }, (_, i) => ({ params: { at: at(made + i) } })),
    );
  return count / ((performance.now() - start) / 1000);
}

// The first thousand leave memory that belongs to the process: compiled code and buffers.
await create(1000, () => Date.now());
await until(({ complete = 0 }) => complete === 1000);
await delay(restMs);
const before = memory();
const firstWakeAt = Date.now() + bedtimeMs;
const perSecond = await create(sleepers, (index) => firstWakeAt + (index * 1000) / wakesPerSecond);
await until(({ waiting = 0 }) => waiting >= sleepers * 0.99);
// The garbage of creating them is collected when the process is idle for some seconds.
await delay(Math.max(0, firstWakeAt - asleepBeforeWakeMs - Date.now()));
const asleep = memory();
await delay(asleepBeforeWakeMs);
await until(({ complete = 0 }) => complete === 1000 + sleepers);
const late = (
  database
    .prepare("select value from workflow_journal where key = 'do:late-1' order by seq desc limit ?")
    .all(sleepers) as { value: string }[]
)
  .map(({ value }) => Number(value.slice(1)))
  .toSorted((a, b) => a - b);
const after = memory();

async function medianMs(run: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < 60; i++) {
    const start = performance.now();
    await run();
    times.push(performance.now() - start);
  }
  return median(times);
}
const list = (name: string) => async (): Promise<unknown> =>
  ours.call("GET", `/workflows/${name}/instances?per_page=50`);
const start = (name: string) => async (): Promise<unknown> =>
  ours.call("POST", `/workflows/${name}/instances`, { params: { at: 0 } });
for (let made = 0; made < 1000; made += 100)
  await ours.call(
    "POST",
    "/workflows/Few/instances/batch",
    Array.from({ length: 100 }, () => ({})),
  );
await delay(3000);
const few = { list: await medianMs(list("Few")), start: await medianMs(start("Few")) };
const have = sleepers + 1000;
for (let made = have; made < stored; made += 100)
  await ours.call(
    "POST",
    "/workflows/Many/instances/batch",
    Array.from({ length: 100 }, () => ({})),
  );
for (;;) {
  const { instances } = await ours.call<{ instances: Record<string, number> }>("GET", "/workflows/Many");
  if (instances["complete"] === Math.max(0, Math.ceil((stored - have) / 100) * 100)) break;
  await delay(500);
}
const many = { list: await medianMs(list("Many")), start: await medianMs(start("Many")) };
await ours.stop();

async function repeat(count: number, run: (index: number) => Promise<void>): Promise<void> {
  let begun = 0;
  const again = async (): Promise<void> => {
    while (begun < count) await run(begun++);
  };
  await Promise.all(Array.from({ length: 64 }, again));
}

/** The same on DBOS, in MB of its process, without its database. The instances do not wake. */
async function sleepOnDbos(): Promise<number> {
  const dbos = await startDbos();
  await repeat(1000, async () => dbos.begin());
  await delay(restMs);
  const initially = residentMegabytes(dbos.pid);
  const since = Date.now();
  await repeat(sleepers, async () => dbos.begin());
  await delay(Math.max(restMs, since + bedtimeMs - Date.now()));
  const grownBy = residentMegabytes(dbos.pid) - initially;
  await dbos.stop();
  return grownBy;
}

/** The same on Restate, in MB of its two processes and milliseconds. */
async function sleepOnRestate(): Promise<{ grownBy: number; late: number[] }> {
  const restate = await startRestate();
  const memoryOf = (): number =>
    restate.pids
      .flatMap(tree)
      .map(residentMegabytes)
      .reduce((a, b) => a + b);
  const makeAll = async (count: number, wakeAt: (index: number) => number): Promise<void> =>
    repeat(count, async (index) => restate.post("/Sleeping/sleep/send", wakeAt(index)));
  const wake = async (count: number): Promise<number[]> => {
    const woken: number[] = [];
    for (; woken.length < count; await delay(1000))
      woken.push(...(await restate.post<number[]>("/Sleeping/read")));
    return woken.toSorted((a, b) => a - b);
  };
  await makeAll(1000, () => Date.now());
  await wake(1000);
  await delay(restMs);
  const initially = memoryOf();
  const first = Date.now() + bedtimeMs;
  await makeAll(sleepers, (index) => first + (index * 1000) / wakesPerSecond);
  await delay(Math.max(0, first - asleepBeforeWakeMs - Date.now()));
  const grownBy = memoryOf() - initially;
  await delay(asleepBeforeWakeMs);
  const woken = await wake(sleepers);
  await restate.stop();
  return { grownBy, late: woken };
}
installPeers();
const restate = await sleepOnRestate();
const dbosGrownBy = await sleepOnDbos();

const at = (share: number, of = late): number => of[Math.floor((of.length - 1) * share)]!;
const each = (megabytes: number): number => (megabytes * 1024) / sleepers;
const grownBy = asleep.engine + asleep.cells - before.engine - before.cells;
printTable(
  ["", "engine MB", "cells MB"],
  [
    ["before", before.engine, before.cells],
    [`${sleepers} asleep`, asleep.engine, asleep.cells],
    ["after they woke", after.engine, after.cells],
  ],
);
printTable(
  ["instances stored", "list p50 ms", "start p50 ms"],
  [
    ["1000", few.list, few.start],
    [String(stored), many.list, many.start],
  ],
);
printTable(
  [`${sleepers} asleep`, "MB more, all processes", "KB more for each", "lateness p50 ms", "p99 ms"],
  [
    ["selvedge", grownBy, each(grownBy), at(0.5), at(0.99)],
    ["restate", restate.grownBy, each(restate.grownBy), at(0.5, restate.late), at(0.99, restate.late)],
    ["dbos, without its database", dbosGrownBy, each(dbosGrownBy), "", ""],
  ],
);
printGoals([
  reported("durable creates per second, in batches of 100", perSecond),
  reported("lateness p50 ms", at(0.5)),
  atMost(`G8 lateness p99 ms at ${wakesPerSecond} wakes a second`, at(0.99), 300),
  atMost("MB more in the engine while they sleep", asleep.engine - before.engine, 25),
  atMost("G7 memory of a sleeper: ours / restate", grownBy / restate.grownBy, 0.4),
  atMost("G7 memory of a sleeper: ours / dbos", grownBy / dbosGrownBy, 1),
  atMost("G8 lateness p99: ours / restate", at(0.99) / at(0.99, restate.late), 0.4),
  reported("MB more in the cells while they sleep", asleep.cells - before.cells),
  atMost(`listing, ${stored} / 1000`, many.list / few.list, 1.5),
  atMost(`starting, ${stored} / 1000`, many.start / few.start, 1.5),
]);

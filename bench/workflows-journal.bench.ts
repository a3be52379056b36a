import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openStorage } from "../src/platform/storage/storage.ts";
import type {
  InvocationListener,
  InvocationRunner,
} from "../src/products/workflows/cells/invocation-runner.ts";
import { clock } from "../src/platform/timers/clock.ts";
import { WorkflowEngine } from "../src/products/workflows/engine/engine.ts";
import { instanceStore } from "../src/products/workflows/store/store.ts";
import { journalColumns } from "../src/products/workflows/store/store-columns.ts";
import { addWorkflow, EngineHarness } from "../src/products/workflows/testing.ts";
import { callText, type CallMessage } from "../src/products/workflows/worker/messages.ts";
import { atLeast, median, pairedRatio, printGoals, printTable, reported } from "./lib/measure.ts";

/**
 * Measures group commit. With real cells: changes per commit while 128 workflows run. With cells that respond at once:
 * journal rows per second, compared with bare SQLite with the same table, index and rows per commit.
 */
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 5);
const roundMs = 2000;
const steps = 10;
const folder = mkdtempSync(join(tmpdir(), "bench-journal-"));

/** Keeps `concurrency` calls running for a while. */
async function keepBusy(concurrency: number, run: (index: number) => Promise<void>): Promise<void> {
  const end = performance.now() + roundMs;
  let index = 0;
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (performance.now() < end) await run(index++);
    }),
  );
}

const input = (id: string) => ({
  accountId: "a",
  workflowRid: 1,
  versionRid: 1,
  id,
  params: "j{}",
  trigger: "api" as const,
  creatorTrace: null,
  successRetentionMs: 86_400_000,
  errorRetentionMs: 86_400_000,
});

/** Creates an instance, and resolves when its end is durable. */
async function runOne(engine: WorkflowEngine, id: string): Promise<void> {
  const [row] = await engine.operations.create(0, [input(id)]);
  await engine.state.ends.next(row!.rid, 60_000);
}

/** A fake cell that completes every step as soon as the previous one has been acknowledged. */
class AnsweringCells implements InvocationRunner {
  listener!: InvocationListener;
  readonly #done = new Map<number, number>();

  run(invocation: number): void {
    this.#done.set(invocation, 0);
    this.answer(invocation);
  }
  standBy(invocation: number): void {
    this.#done.set(invocation, 0);
  }
  standsBy(invocation: number): boolean {
    return this.#done.has(invocation);
  }
  begin(invocation: number): boolean {
    this.answer(invocation);
    return true;
  }
  answer(invocation: number): void {
    const step = this.#done.get(invocation) ?? steps;
    this.#done.set(invocation, step + 1);
    setImmediate(() => {
      if (step < steps) void this.listener.call(invocation, step, callText(done(step)));
      else this.listener.ended(invocation, { end: "return", value: "j45", unasked: [] });
    });
  }
  signal(invocation: number): void {
    this.#done.delete(invocation);
  }
}
const config = '{"retries":{"limit":5,"delay":10000,"backoff":"exponential"},"timeout":"10 minutes"}';
const done = (step: number): CallMessage => ["done", `do:s${step}-1`, 1, 0, `j${step}`, config, 0];

/** Journal rows per second on SQLite itself, flushed at each commit. */
function bareRate(rowsPerCommit: number, name: string): number {
  const database = new DatabaseSync(join(folder, name));
  database.exec("pragma journal_mode = wal; pragma synchronous = full; pragma wal_autocheckpoint = 4000");
  const columns = journalColumns.names.map((each) => `"${each}"`).join(", ");
  database.exec(
    `create table j (seq integer primary key, ${columns}); create index j_instance on j (rid, seq)`,
  );
  const insert = database.prepare(
    `insert into j (${columns}) values (${journalColumns.names.map(() => "?").join(", ")})`,
  );
  let rows = 0;
  const start = performance.now();
  while (performance.now() - start < roundMs) {
    database.exec("begin immediate");
    for (let i = 0; i < rowsPerCommit; i++, rows++) {
      const at = Date.now();
      const row = { rid: rows % 1000, run: 1, kind: "done" as const, key: "do:s1-1", attempt: 1, at };
      const rest = { startedOn: at, due: null, value: "j1", error: null, config };
      insert.run(...journalColumns.values({ ...row, ...rest }));
    }
    database.exec("commit");
  }
  const rate = rows / ((performance.now() - start) / 1000);
  database.close();
  return rate;
}

const shared = await EngineHarness.start(
  `let sum = 0; for (let i = 0; i < ${steps}; i++) sum += await step.do("s" + i, async () => i); return sum;`,
  { storage: await openStorage(`sqlite:${join(folder, "cells.db")}`) },
);
const perCommit: number[] = [];
for (let round = -1; round < rounds; round++) {
  const { commits, changes } = { ...shared.engine.state.writer.counts };
  await keepBusy(128, async (index) => runOne(shared.engine, `${round}-${index}`));
  const now = shared.engine.state.writer.counts;
  if (round >= 0) perCommit.push((now.changes - changes) / (now.commits - commits));
}
await shared.close();

const storage = await openStorage(`sqlite:${join(folder, "stub.db")}`);
await addWorkflow(storage);
const cells = new AnsweringCells();
const version = {
  rid: 1,
  workflowName: "bench",
  stepsMax: 10_000,
  code: { accountId: "a", scriptName: "s", scriptVersion: "v", className: "Main" },
};
const engine = new WorkflowEngine({
  store: instanceStore(storage, "bench"),
  cells,
  clock,
  version: async () => version,
  latestVersion: async () => version,
  concurrency: 100_000,
  limits: { lingerMs: 1000, valueBytesMax: 2 ** 20, retryDelayMs: 1000 },
  onFault(error) {
    throw error;
  },
});
cells.listener = engine.calls;
await engine.start();
const rates = { engine: [] as number[], bare: [] as number[] };
const rowsPerCommit: number[] = [];
for (let round = -1; round < rounds; round++) {
  const { commits } = { ...engine.state.writer.counts };
  const start = performance.now();
  let rows = 0;
  await keepBusy(1024, async (index) => {
    await runOne(engine, `${round}-${index}`);
    rows += steps;
  });
  const rate = rows / ((performance.now() - start) / 1000);
  const each = rows / (engine.state.writer.counts.commits - commits);
  const bare = bareRate(Math.round(each), `bare${round}.db`);
  if (round < 0) continue;
  rates.engine.push(rate);
  rates.bare.push(bare);
  rowsPerCommit.push(each);
}
await engine.stop();
await storage.close();
rmSync(folder, { recursive: true });

printTable(
  ["", "journal rows per second"],
  [
    ["the engine, with the creation and the end of every ten steps", median(rates.engine)],
    ["bare SQLite, append and index", median(rates.bare)],
  ],
);
printGoals([
  atLeast("G5 changes in a commit, 128 workflows at a time", median(perCommit), 8),
  reported("G5 journal rows in a commit, cells that answer at once", median(rowsPerCommit)),
  atLeast("G5 journal rows per second: ours / bare SQLite", pairedRatio(rates.engine, rates.bare), 0.7),
]);

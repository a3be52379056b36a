import { setTimeout as delay } from "node:timers/promises";
import type { Cell } from "../cell.ts";
import { CellError, CellFault } from "../errors.ts";
import type { CellRun } from "../gateway/cell-run.ts";
import { askDispatches } from "./ask.ts";
import { addRun, type CpuHistogram } from "./cpu-histogram.ts";
import type { RunMetadata } from "../protocol.ts";
import type { CellScript } from "../process/script.ts";

/** Runs of a customer's script, by its owner as cells know it. */
export interface CustomerRuns {
  requests: number;
  faults: number;
  /** CPU time in milliseconds. In shared cells it is sampled, and contains that of the dispatcher. */
  cpuMs: number;
  /** Sampled runs by their CPU time. */
  cpuRuns: CpuHistogram;
  /** Name and message of the last exception, or the limit that was exceeded. */
  lastFault?: string | undefined;
}

/** The parts of a cell and of a run that are used here. */
type DispatchingCell = Pick<Cell, "isDead" | "control"> & {
  readonly gateway: Pick<Cell["gateway"], "dispatched">;
};
type SpentRun = Pick<CellRun, "script" | "cpuShareMs" | "token">;

/** Runs of one second in a cell for whose CPU time the cell is asked to name the customers. */
const sampledMax = 1000;
const faultLengthMax = 120;
const mebibyte = 1024 * 1024;
/** An idle cell answers within milliseconds. */
const answerMs = 1000;
/** Trial starts are not counted: they are no runs for a dispatcher, and their counts are never taken. */
const isCounted = ({ isDispatched, isTrial }: CellScript): boolean =>
  isDispatched === true && isTrial !== true;

/** Name and message of an exception, or the limit that the run exceeded: that of the script, or a lower one of its dispatcher. */
function faultOf({ kind, message, cause }: CellError, { cpuMs, memoryBytes }: CellScript): string {
  if (kind === "cpu") return `The script exceeded its CPU time limit of ${cpuMs} ms.`;
  if (kind === "memory") return `The script exceeded its memory limit of ${memoryBytes / mebibyte} MB.`;
  const name = kind === "exception" ? (cause as { name?: string } | undefined)?.name : undefined;
  return name === undefined ? message : `${name}: ${message}`;
}

interface Sampled {
  runs: { token: string; cpuMs: number }[];
  /** CPU time of all sampled runs, also of those that found no room in `runs`. */
  cpuMs: number;
  /** The owners of the dispatchers that ran. */
  owners: Set<string>;
}

/**
 * Counts the runs of customers' scripts: those that go through the gateway when they end, and those inside a dispatcher's
 * cell by asking the cell. The gateway knows the CPU time of a dispatcher's run, and the cell the customers of that run.
 */
export class DispatchTally {
  #counts = new Map<string, CustomerRuns>();
  /** Cells with runs of dispatchers since the last question. */
  readonly #cells = new Map<DispatchingCell, Sampled>();
  /** Cells that have not answered yet. */
  readonly #asked = new Map<DispatchingCell, { answered: Promise<void>; owners: ReadonlySet<string> }>();

  #of(owner: string): CustomerRuns {
    let count = this.#counts.get(owner);
    if (count === undefined)
      this.#counts.set(owner, (count = { requests: 0, faults: 0, cpuMs: 0, cpuRuns: [] }));
    return count;
  }

  /** A run has ended that went through the gateway. */
  ran(script: CellScript): void {
    if (isCounted(script)) this.#of(script.owner).requests++;
  }

  /** Such a run has failed. Refusals for lack of room, and deaths of its cell by others, are no faults of the script. */
  failed(script: CellScript, error: unknown): void {
    if (!isCounted(script) || !(error instanceof CellError)) return;
    if (error.kind === "overloaded" || error.kind === "unavailable") return;
    if (error.cause instanceof CellFault && !error.cause.mayBeCulprit) return;
    const count = this.#of(script.owner);
    count.faults++;
    const text = faultOf(error, script);
    // Copied: a part of a text keeps all of it in memory, and an hour's messages of all customers are large.
    count.lastFault = Buffer.from(text.slice(0, faultLengthMax)).toString();
  }

  /** A run in a shared cell has ended. */
  spent(
    cell: DispatchingCell,
    { script, cpuShareMs, token }: SpentRun,
    metadata?: Partial<RunMetadata>,
  ): void {
    if (isCounted(script)) this.#spend(script.owner, cpuShareMs);
    if (metadata?.generation === undefined || token === undefined) return;
    let sampled = this.#cells.get(cell);
    if (sampled === undefined) this.#cells.set(cell, (sampled = { runs: [], cpuMs: 0, owners: new Set() }));
    sampled.owners.add(script.owner);
    if (cpuShareMs === 0) return;
    sampled.cpuMs += cpuShareMs;
    if (sampled.runs.length < sampledMax) sampled.runs.push({ token, cpuMs: cpuShareMs });
  }

  /** A run in a cell of its own has ended, whose CPU time is exact. */
  spentAlone(script: CellScript, cpuMs: number): void {
    if (isCounted(script)) this.#spend(script.owner, cpuMs);
  }

  #spend(owner: string, cpuMs: number): void {
    const count = this.#of(owner);
    count.cpuMs += cpuMs;
    if (cpuMs > 0) addRun(count.cpuRuns, cpuMs);
  }

  /** Number of cells that do not answer, so that counts of such dispatchers are missing: of those of an account, for example. */
  late(isOne: (owner: string) => boolean): number {
    return [...this.#asked.values()].filter(({ owners }) => [...owners].some(isOne)).length;
  }

  /**
   * Asks the cells, and returns all counts since the last call. A cell that does not answer within `waitMs`, because a run
   * keeps it busy, adds its counts when it does. The last counts of a cell that died are lost.
   */
  async take(waitMs = answerMs): Promise<[owner: string, CustomerRuns][]> {
    for (const [cell, sampled] of this.#cells) {
      if (this.#asked.has(cell)) continue;
      this.#cells.delete(cell);
      if (cell.isDead) continue;
      const answered = this.#ask(cell, sampled)
        .catch(() => {}) // it has died meanwhile
        .finally(() => this.#asked.delete(cell));
      this.#asked.set(cell, { answered, owners: sampled.owners });
    }
    if (this.#asked.size > 0) {
      const waited = new AbortController();
      const timeout = delay(waitMs, undefined, { signal: waited.signal }).catch(() => {});
      const answers = [...this.#asked.values()].map(({ answered }) => answered);
      await Promise.race([Promise.all(answers), timeout]);
      waited.abort();
    }
    const counts = [...this.#counts];
    this.#counts = new Map();
    return counts;
  }

  async #ask(cell: DispatchingCell, sampled: Sampled): Promise<void> {
    const { scripts, targets } = await askDispatches(
      cell.control,
      sampled.runs.map(({ token }) => token),
    );
    const { dispatched } = cell.gateway;
    for (const [id, { requests, faults, lastFault }] of scripts) {
      // Ids that the cell did not receive are not believed.
      const owner = dispatched.get(id);
      if (owner === undefined) continue;
      const count = this.#of(owner);
      count.requests += requests;
      count.faults += faults;
      if (lastFault !== undefined) count.lastFault = lastFault;
    }
    const kept = sampled.runs.reduce((sum, { cpuMs }) => sum + cpuMs, 0);
    for (const [i, { cpuMs }] of sampled.runs.entries()) {
      const owners = (targets[i] ?? "").split(" ").flatMap((id) => dispatched.get(id) ?? []);
      for (const owner of owners) {
        const count = this.#of(owner);
        count.cpuMs += (cpuMs * (sampled.cpuMs / kept)) / owners.length;
        addRun(count.cpuRuns, cpuMs / owners.length);
      }
    }
  }
}

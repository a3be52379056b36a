import type { Cell } from "../cell.ts";
import { CellError, CellFault } from "../errors.ts";
import type { CellRun } from "../gateway/cell-run.ts";
import { askDispatches } from "./ask.ts";
import type { RunMetadata } from "../protocol.ts";
import type { CellScript } from "../process/script.ts";

/** Runs of a customer's script, by its owner as cells know it. */
export interface CustomerRuns {
  requests: number;
  faults: number;
  /** CPU time in milliseconds. In shared cells it is sampled, and contains that of the dispatcher. */
  cpuMs: number;
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
/** Trial starts are not counted: they are no runs for a dispatcher, and their counts are never taken. */
const isCounted = ({ isDispatched, isTrial }: CellScript): boolean =>
  isDispatched === true && isTrial !== true;

interface Sampled {
  runs: { token: string; cpuMs: number }[];
  /** CPU time of all sampled runs, also of those that found no room in `runs`. */
  cpuMs: number;
}

/**
 * Counts the runs of customers' scripts: those that go through the gateway when they end, and those inside a dispatcher's
 * cell by asking the cell. The gateway knows the CPU time of a dispatcher's run, and the cell the customers of that run.
 */
export class DispatchTally {
  #counts = new Map<string, CustomerRuns>();
  /** Cells with runs of dispatchers since the last question. */
  readonly #cells = new Map<DispatchingCell, Sampled>();

  #of(owner: string): CustomerRuns {
    let count = this.#counts.get(owner);
    if (count === undefined) this.#counts.set(owner, (count = { requests: 0, faults: 0, cpuMs: 0 }));
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
    if (error.cause instanceof CellFault && !error.cause.isSuspect) return;
    const count = this.#of(script.owner);
    const thrown = error.kind === "exception" ? (error.cause as { name?: string } | undefined) : undefined;
    count.faults++;
    const text = thrown?.name === undefined ? error.message : `${thrown.name}: ${error.message}`;
    // Copied: a part of a text keeps all of it in memory, and an hour's messages of all customers are large.
    count.lastFault = Buffer.from(text.slice(0, faultLengthMax)).toString();
  }

  /** A run in a shared cell has ended. */
  spent(
    cell: DispatchingCell,
    { script, cpuShareMs, token }: SpentRun,
    metadata?: Partial<RunMetadata>,
  ): void {
    if (isCounted(script)) this.#of(script.owner).cpuMs += cpuShareMs;
    if (metadata?.generation === undefined || token === undefined) return;
    let sampled = this.#cells.get(cell);
    if (sampled === undefined) this.#cells.set(cell, (sampled = { runs: [], cpuMs: 0 }));
    if (cpuShareMs === 0) return;
    sampled.cpuMs += cpuShareMs;
    if (sampled.runs.length < sampledMax) sampled.runs.push({ token, cpuMs: cpuShareMs });
  }

  /** A run in a cell of its own has ended, whose CPU time is exact. */
  spentAlone(script: CellScript, cpuMs: number): void {
    if (isCounted(script)) this.#of(script.owner).cpuMs += cpuMs;
  }

  /** Asks the cells, and returns all counts since the last call. The last counts of a cell that died are lost. */
  async take(): Promise<[owner: string, CustomerRuns][]> {
    const cells = [...this.#cells];
    this.#cells.clear();
    await Promise.all(
      cells.map(async ([cell, sampled]) => {
        if (!cell.isDead) await this.#ask(cell, sampled).catch(() => {}); // it has died meanwhile
      }),
    );
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
      // Ids that the cell was not told are not believed.
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
      for (const owner of owners) this.#of(owner).cpuMs += (cpuMs * (sampled.cpuMs / kept)) / owners.length;
    }
  }
}

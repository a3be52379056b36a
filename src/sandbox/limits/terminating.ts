import type { Cell } from "../cell.ts";
import type { FaultKind } from "../errors.ts";
import type { CellSettings } from "../settings.ts";

type TerminatingCell = Pick<Cell, "runs" | "possibleCulprits" | "isDead" | "die"> & {
  readonly process: Pick<Cell["process"], "cpuMs" | "rssBytes">;
};

/** Growth that is allowed to a cell that has exceeded its memory. */
const growthBytesMax = 64 * 1024 * 1024;

/**
 * Cells with a fault and with runs of innocent owners that cannot be retried: a POST that the cell has read
 * may have taken effect. Such a cell gets no new requests and a grace period for these runs; then it is
 * killed.
 */
export class TerminatingCells {
  readonly #cells = new Map<
    TerminatingCell,
    { kind: FaultKind; since: number; cpuMsMax: number; rssBytesMax: number }
  >();
  readonly #settings: Pick<CellSettings, "shared" | "graceCpuMs" | "graceMsMax">;

  constructor(settings: Pick<CellSettings, "shared" | "graceCpuMs" | "graceMsMax">) {
    this.#settings = settings;
  }

  /**
   * Whether a cell has runs that cannot be retried, of owners other than a single suspected one. Few cells
   * terminate at a time, because their memory comes on top of that of the cells that replace them.
   */
  isFor({ runs, possibleCulprits }: TerminatingCell): boolean {
    if (this.#cells.size >= this.#settings.shared) return false;
    const owners = new Set(possibleCulprits.map(({ script }) => script.owner));
    for (const cellRun of runs)
      if (!cellRun.isMovable() && (owners.size > 1 || !owners.has(cellRun.script.owner))) return true;
    return false;
  }

  add(cell: TerminatingCell, kind: FaultKind, now: number): void {
    this.#cells.set(cell, {
      kind,
      since: now,
      cpuMsMax: cell.process.cpuMs() + this.#settings.graceCpuMs,
      rssBytesMax: cell.process.rssBytes() + growthBytesMax,
    });
  }

  /** Kills the cells that have no runs left, or whose grace period is over. */
  killDue(now: number): void {
    for (const [cell, { kind, since, cpuMsMax, rssBytesMax }] of this.#cells) {
      const { process, runs } = cell;
      const isOver =
        runs.size === 0 ||
        now - since > this.#settings.graceMsMax ||
        process.cpuMs() > cpuMsMax ||
        process.rssBytes() > rssBytesMax;
      if (!isOver && !cell.isDead) continue;
      this.#cells.delete(cell);
      cell.die(runs.size === 0 ? "ended" : kind);
    }
  }

  /** Kills all terminating cells. */
  close(): void {
    for (const cell of this.#cells.keys()) cell.die("ended");
    this.#cells.clear();
  }
}

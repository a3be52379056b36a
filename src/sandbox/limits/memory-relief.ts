import { MemoryBudget } from "./memory-budget.ts";
import type { Cell } from "../cell.ts";

/**
 * Keeps one shared cell within its memory. Its memory is measured at intervals, and before each load of a script:
 * many scripts can be loaded between two checks, and a busy server checks late.
 */
export class MemoryRelief {
  readonly #cell: Pick<Cell, "unloadSome" | "process">;
  readonly #budget: MemoryBudget;
  readonly #replace: () => void;
  #unloading: Promise<void> | undefined;

  /** `replace` is called at each measurement in which the cell has used up its budget. */
  constructor(cell: Pick<Cell, "unloadSome" | "process">, bytesMax: number, replace: () => void) {
    this.#cell = cell;
    this.#budget = new MemoryBudget(bytesMax);
    this.#replace = replace;
  }

  /** Unloads scripts, or has the cell replaced, if this resident memory requires it. */
  relieve(rssBytes: number): void {
    const relief = this.#budget.reliefFor(rssBytes);
    if (relief === "replace") this.#replace();
    if (relief === undefined || this.#unloading !== undefined) return;
    const unloaded = this.#cell.unloadSome().catch(() => {}); // the cell died: its owner notices it
    this.#unloading = unloaded.finally(() => (this.#unloading = undefined));
  }

  /**
   * Called before a load. Returns undefined if the cell has room for the script, else a promise that resolves
   * when some scripts were unloaded for it. Loads that wait get their room one after the other.
   */
  room(): Promise<void> | undefined {
    if (this.#unloading !== undefined) return this.#unloading.then(async () => this.room());
    this.relieve(this.#cell.process.rssBytes());
    return this.#unloading;
  }
}

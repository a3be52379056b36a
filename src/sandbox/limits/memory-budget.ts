/** A measure that reduces the memory of a shared cell. */
export type Relief = "unload" | "replace";

/** Parts of the budget. The rest allows for growth between a decision and its effect. */
const unloadFrom = 5 / 6;
const unloadStep = 1 / 96;
const replaceFrom = 23 / 24;

/**
 * Decides when a cell must unload scripts, and when it must be replaced. Memory of an unloaded script is
 * reused for the next one, but little of it returns to the system, and workerd keeps some memory of each
 * script. So a cell near its budget unloads some more scripts for each further step of growth, and is
 * replaced at the end of its budget.
 */
export class MemoryBudget {
  readonly #bytesMax: number;
  #unloadAt: number;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#unloadAt = bytesMax * unloadFrom;
  }

  /** Returns the measure to take for this resident memory. */
  reliefFor(bytes: number): Relief | undefined {
    const step = this.#bytesMax * unloadStep;
    if (bytes > this.#bytesMax * replaceFrom) return "replace";
    if (bytes > this.#unloadAt) {
      this.#unloadAt = bytes + step;
      return "unload";
    }
    this.#unloadAt = Math.max(this.#bytesMax * unloadFrom, Math.min(this.#unloadAt, bytes + step));
    return undefined;
  }
}

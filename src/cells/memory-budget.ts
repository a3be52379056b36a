/** What keeps a shared cell inside its memory. */
export type Relief = "unload" | "replace";

/** Parts of the budget. The last of it is for what comes between a decision and its effect. */
const unloadFrom = 5 / 6;
const unloadStep = 1 / 96;
const replaceFrom = 23 / 24;

/**
 * Decides when a cell is to give up scripts, and when it is to be replaced. What a script gives up is used again by the next
 * one, but little of it goes back to the system; and workerd keeps some of what each script took. So a cell that is near its
 * budget gives up some more for each further step of growth, and at the end of the budget another takes its place.
 */
export class MemoryBudget {
  readonly #bytesMax: number;
  #unloadAt: number;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#unloadAt = bytesMax * unloadFrom;
  }

  /** What is to be done about so much resident memory. */
  look(bytes: number): Relief | undefined {
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

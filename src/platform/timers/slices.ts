/** Longest time for which work over many items keeps other requests waiting. */
const sliceMs = 10;

/** Work over many items, which may pause at each `yield`. */
export type Sliced<Result> = Generator<void, Result, void>;

/** The slices of asynchronous work. Between them this process answers other requests. */
export class Slices {
  #endMs = performance.now() + sliceMs;

  get isOver(): boolean {
    return performance.now() >= this.#endMs;
  }

  /**
   * At the end of a slice, lets other work of the process run. Between items this is needed even if each of them
   * awaits a query: with SQLite, a query is done at once.
   */
  async rest(): Promise<void> {
    if (!this.isOver) return;
    await new Promise((resolve) => setImmediate(resolve));
    this.#endMs = performance.now() + sliceMs;
  }
}

/** The result of the work, which pauses after each slice. */
export async function inSlices<Result>(work: Sliced<Result>): Promise<Result> {
  const slices = new Slices();
  for (let step = work.next(); ; step = work.next()) {
    if (step.done === true) return step.value;
    if (slices.isOver) await slices.rest();
  }
}

/** The result of the work, without pauses: for programs that serve no requests. */
export function atOnce<Result>(work: Sliced<Result>): Result {
  for (let step = work.next(); ; step = work.next()) if (step.done === true) return step.value;
}

import { matches, type Run, type RunFilter } from "./run.ts";

/** A run with a number that stays the same while other runs are added and dropped. */
export interface Received {
  number: number;
  run: Run;
  length: number;
}

const runsMax = 10_000;
/** Characters of the messages that the runs came in. */
const charactersMax = 32 * 1024 * 1024;

/** The last runs of a tail, and those of them that match the filter. The oldest are dropped. */
export class RunRing {
  #runs: Received[] = [];
  #filter: RunFilter = { outcome: "", status: "", level: "", text: "" };
  #characters = 0;
  /** Number of runs received, including dropped ones. */
  received = 0;
  shown: Received[] = [];

  add(text: string): void {
    const entry = { number: ++this.received, run: JSON.parse(text) as Run, length: text.length };
    this.#runs.push(entry);
    this.#characters += text.length;
    if (matches(entry.run, this.#filter)) this.shown.push(entry);
    if (this.#runs.length > runsMax * 1.1 || this.#characters > charactersMax) this.#drop();
  }

  /** Drops many at once, so that a full ring does not move all of them for each run. */
  #drop(): void {
    let from = Math.max(0, this.#runs.length - runsMax);
    for (let i = 0; i < from; i++) this.#characters -= this.#runs[i]!.length;
    while (from < this.#runs.length - 1 && this.#characters > charactersMax * 0.8)
      this.#characters -= this.#runs[from++]!.length;
    this.#runs.splice(0, from);
    const first = this.#runs[0]!.number;
    this.shown = this.shown.filter(({ number }) => number >= first);
  }

  setFilter(filter: RunFilter): void {
    this.#filter = filter;
    this.shown = this.#runs.filter(({ run }) => matches(run, filter));
  }

  clear(): void {
    this.#runs = [];
    this.shown = [];
    this.#characters = 0;
  }
}

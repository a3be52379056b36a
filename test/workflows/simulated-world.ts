import type { Clock } from "../../src/platform/timers/clock.ts";

/** Time and randomness of a simulation: its events follow from its seed. */
export class World {
  time = 0;
  /** Offset of the wall clock from the elapsed time. */
  skew = 1_790_000_000_000;
  readonly trace: string[] = [];
  #state: number;
  #sequence = 0;
  readonly #agenda: { at: number; sequence: number; run: () => void }[] = [];

  constructor(seed: number) {
    this.#state = seed * 2_654_435_761;
  }

  random(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  }
  chance = (probability: number): boolean => this.random() < probability;
  integer = (below: number): number => Math.floor(this.random() * below);
  pick = <T>(of: readonly T[]): T => of[this.integer(of.length)]!;
  /** The delay of a message in milliseconds. */
  delay = (): number => (this.chance(0.05) ? this.random() * 500 : this.random() * 5);

  now = (): number => Math.floor(this.skew + this.time);
  log(line: string): void {
    this.trace.push(`${this.time.toFixed(3)} ${line}`);
  }

  at(time: number, run: () => void): () => void {
    const item = { at: Math.max(time, this.time), sequence: this.#sequence++, run };
    const items = this.#agenda;
    let low = 0;
    let high = items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = items[middle]!;
      // Sorted in descending order, so that the next event is last.
      if (other.at > item.at || (other.at === item.at && other.sequence > item.sequence)) low = middle + 1;
      else high = middle;
    }
    items.splice(low, 0, item);
    return () => {
      item.run = () => {};
    };
  }
  after = (ms: number, run: () => void): (() => void) => this.at(this.time + Math.max(0, ms), run);

  /** The clock of a component that can die; its timers then never fire. */
  clock(isAlive: () => boolean): Clock {
    const whileAlive = (run: () => void) => (): void => {
      if (isAlive()) run();
    };
    return {
      now: this.now,
      after: (ms, run) => this.after(ms, whileAlive(run)),
      soon: (run) => void this.after(0, whileAlive(run)),
    };
  }

  /** Runs events until the time is reached, or none is left. */
  async runUntil(time: number, check: () => void): Promise<void> {
    for (;;) {
      const next = this.#agenda.at(-1);
      if (next === undefined || next.at > time) break;
      this.#agenda.pop();
      this.time = next.at;
      next.run();
      await settled();
      check();
    }
    this.time = time;
  }
}

/** Resolves once all runnable promise callbacks have run. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

import { createHash } from "node:crypto";
import { z } from "zod";

const millisecondsMax = 600_000;
/** Milliseconds that a fault may take. */
export const milliseconds = z.int().min(0).max(millisecondsMax);

/** The part of those that fit which a fault strikes; all by default. */
export const selection = {
  /** The n-th that fits, or from one to another. */
  calls: z.union([z.int().min(1), z.tuple([z.int().min(1), z.int().min(1)])]).optional(),
  times: z.int().min(1).optional(),
  probability: z.number().min(0).max(1).optional(),
};

interface Selected {
  calls?: number | [number, number] | undefined;
  times?: number | undefined;
  probability?: number | undefined;
}

interface Rule<F> {
  id: string;
  /** Among the faults of its kind since the last clear: chances follow from it. */
  number: number;
  fault: F;
  /** Calls, requests, questions, writes or runs that fit. */
  fitting: number;
  hits: number;
}

/** A fault that strikes. */
export interface Struck<F> {
  id: string;
  fault: F;
  /** A number from 0 to 1 that follows from the seed and from the number of the call. */
  chance(what: string): number;
}

/** Counts the faults of all kinds, for their ids. */
export interface FaultCount {
  count: number;
}

/** The faults of one kind. The newest one that fits is the one that strikes. */
export class FaultRules<F extends Selected> {
  readonly kind: string;
  readonly #seed: string;
  readonly #ids: FaultCount;
  #rules: Rule<F>[] = [];
  #sinceClear = 0;

  constructor(kind: string, seed: string, ids: FaultCount) {
    this.kind = kind;
    this.#seed = seed;
    this.#ids = ids;
  }

  get list(): { id: string; kind: string; hits: number; fault: F }[] {
    return this.#rules.map(({ id, hits, fault }) => ({ id, kind: this.kind, hits, fault }));
  }

  get isEmpty(): boolean {
    return this.#rules.length === 0;
  }

  /** Returns the id of the fault. */
  add(fault: F): string {
    const id = `fault-${++this.#ids.count}`;
    this.#rules.unshift({ id, number: ++this.#sinceClear, fault, fitting: 0, hits: 0 });
    return id;
  }

  /** False if there is none with this id. */
  remove(id: string): boolean {
    const count = this.#rules.length;
    this.#rules = this.#rules.filter((rule) => rule.id !== id);
    return this.#rules.length < count;
  }

  clear(): void {
    this.#rules = [];
    this.#sinceClear = 0;
  }

  /** The fault that strikes one for which `fits` holds; undefined for none. */
  strike(fits: (fault: F) => boolean): Struck<F> | undefined {
    for (const rule of this.#rules) {
      if (!fits(rule.fault)) continue;
      const fitting = ++rule.fitting;
      if (!this.#isHit(rule)) continue;
      rule.hits++;
      const chance = (what: string): number => this.#chance(rule.number, what, fitting);
      return { id: rule.id, fault: rule.fault, chance };
    }
    return undefined;
  }

  #isHit({ fault, fitting, hits, number }: Rule<F>): boolean {
    const { calls, times, probability } = fault;
    const [from, to] = typeof calls === "number" ? [calls, calls] : (calls ?? [1, Infinity]);
    return (
      fitting >= from &&
      fitting <= to &&
      hits < (times ?? Infinity) &&
      (probability === undefined || this.#chance(number, "strikes", fitting) < probability)
    );
  }

  #chance(number: number, what: string, fitting: number): number {
    const digest = createHash("sha256")
      .update(`${this.#seed} ${this.kind} ${number} ${what} ${fitting}`)
      .digest();
    return digest.readUInt32BE() / 2 ** 32;
  }
}

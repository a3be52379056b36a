import { createHash } from "node:crypto";
import { z } from "zod";

const millisecondsMax = 600_000;
/** A delay of a fault, in milliseconds. */
export const milliseconds = z.int().min(0).max(millisecondsMax);

/** A whole name; a `*` in it stands for itself. */
export const dnsName = z
  .string()
  .max(254)
  .regex(/^[^\s.]{1,63}(?:\.[^\s.]{1,63})*\.?$/, "Expected a name such as www.shop.example");

/** Two numbers, the smaller one first. */
export const range = (each: z.ZodNumber) =>
  z.tuple([each, each]).refine(([from, to]) => from <= to, "Expected the smaller number first");

/** Selects which of the matching calls, requests, questions, writes or runs a fault hits; all by default. */
export const selection = {
  /** The n-th match, or a range of matches, from 1. */
  calls: z.union([z.int().min(1), range(z.int().min(1))]).optional(),
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
  /** The number of the fault among those of its kind since the last clear. Random choices are derived from it. */
  number: number;
  fault: F;
  /** Number of matching calls, requests, questions, writes or runs. */
  matches: number;
  hits: number;
}

/** A fault that applies to a call, or to other work. */
export interface AppliedFault<F> {
  id: string;
  fault: F;
  /** A number from 0 to 1, derived from the seed, the fault and the number of the match. */
  chance(what: string): number;
}

/** Counts the faults of all kinds, for their ids. */
export interface FaultCount {
  count: number;
}

/** The faults of one kind. Of several that match, the newest one is applied. */
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
    this.#rules.unshift({ id, number: ++this.#sinceClear, fault, matches: 0, hits: 0 });
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

  /** Returns the newest fault that `matchesCall` accepts and whose selection applies, and counts the hit. */
  apply(matchesCall: (fault: F) => boolean): AppliedFault<F> | undefined {
    for (const rule of this.#rules) {
      if (!matchesCall(rule.fault)) continue;
      const matches = ++rule.matches;
      if (!this.#isHit(rule)) continue;
      rule.hits++;
      const chance = (what: string): number => this.#chance(rule.number, what, matches);
      return { id: rule.id, fault: rule.fault, chance };
    }
    return undefined;
  }

  #isHit({ fault, matches, hits, number }: Rule<F>): boolean {
    const { calls, times, probability } = fault;
    const [from, to] = typeof calls === "number" ? [calls, calls] : (calls ?? [1, Infinity]);
    return (
      matches >= from &&
      matches <= to &&
      hits < (times ?? Infinity) &&
      (probability === undefined || this.#chance(number, "strikes", matches) < probability)
    );
  }

  #chance(number: number, what: string, matches: number): number {
    const digest = createHash("sha256")
      .update(`${this.#seed} ${this.kind} ${number} ${what} ${matches}`)
      .digest();
    return digest.readUInt32BE() / 2 ** 32;
  }
}

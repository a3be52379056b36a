import { LRUCache } from "lru-cache";

interface Record_ {
  /** Runs alone without a fault since the last one. */
  goodRuns: number;
  /** Faults that were its own for certain. */
  faults: number;
}

const faultsRemembered = 6;

/** Whose code may have done harm, and runs alone until it has shown otherwise. Keyed by owner, over all versions. */
export class Suspects {
  readonly #suspects = new LRUCache<string, Record_>({ max: 10_000, ttl: 3_600_000 });
  readonly #runsToTrust: number;
  #revision = 0;

  constructor(runsToTrust: number) {
    this.#runsToTrust = runsToTrust;
  }

  has(owner: string): boolean {
    return this.#suspects.has(owner);
  }

  /** Grows with each change of who is suspected. */
  get revision(): number {
    return this.#revision;
  }

  /** It was there when a cell died, or used more than its share. */
  suspect(owner: string): void {
    if (this.#suspects.has(owner)) return;
    this.#suspects.set(owner, { goodRuns: 0, faults: 0 });
    this.#revision++;
  }

  /** It was alone when its cell died. */
  convict(owner: string): void {
    if (!this.#suspects.has(owner)) this.#revision++;
    const faults = (this.#suspects.get(owner)?.faults ?? 0) + 1;
    this.#suspects.set(owner, { goodRuns: 0, faults: Math.min(faults, faultsRemembered) });
  }

  /** It ran alone, and well. Each fault of the past doubles what it takes to be trusted again. */
  behaved(owner: string): void {
    const record = this.#suspects.get(owner);
    if (record === undefined) return;
    record.goodRuns++;
    if (record.goodRuns < this.#runsToTrust * 2 ** record.faults) return;
    this.#suspects.delete(owner);
    this.#revision++;
  }

  /** It ran alone without a fault, but so long that it would stall others: it stays alone. */
  isHeavy(owner: string): void {
    const record = this.#suspects.get(owner);
    if (record !== undefined) record.goodRuns = 0;
  }
}

import { LRUCache } from "lru-cache";

interface Record_ {
  /** Runs alone without a fault since the last one. */
  goodRuns: number;
  /** As many as it takes to be trusted. */
  needed: number;
  /** Faults that were its own for certain. */
  faults: number;
}

const faultsRemembered = 6;
/** How long it counts that somebody was suspected, though nothing came of it. */
const suspicionMs = 60_000;

/** Whose code may have done harm, and runs alone until it has shown otherwise. Keyed by owner, over all versions. */
export class Suspects {
  readonly #suspects = new LRUCache<string, Record_>({ max: 10_000, ttl: 3_600_000 });
  /** How often someone was suspected lately. */
  readonly #suspicions = new LRUCache<string, number>({ max: 10_000, ttl: suspicionMs });
  readonly #runsToTrust: number;
  #revision = 0;

  constructor(runsToTrust: number) {
    this.#runsToTrust = runsToTrust;
  }

  has(owner: string): boolean {
    return this.#suspects.has(owner);
  }

  /** Whether it has been caught, and not been trusted again since. */
  isConvicted(owner: string): boolean {
    return (this.#suspects.get(owner)?.faults ?? 0) > 0;
  }

  /** Grows with each change of who is suspected. */
  get revision(): number {
    return this.#revision;
  }

  /**
   * It was there when a cell died, or used more than its share. Most who were there are innocent: the first time one good
   * run is enough, and each further time takes four times as many.
   */
  suspect(owner: string): void {
    if (this.#suspects.has(owner)) return;
    const times = this.#suspicions.get(owner) ?? 0;
    this.#suspicions.set(owner, times + 1);
    this.#suspects.set(owner, { goodRuns: 0, needed: Math.min(4 ** times, this.#runsToTrust), faults: 0 });
    this.#revision++;
  }

  /** It was alone when its cell died. Each fault doubles what it takes to be trusted again. */
  convict(owner: string): void {
    if (!this.#suspects.has(owner)) this.#revision++;
    const faults = Math.min((this.#suspects.get(owner)?.faults ?? 0) + 1, faultsRemembered);
    this.#suspects.set(owner, { goodRuns: 0, needed: this.#runsToTrust * 2 ** faults, faults });
  }

  /** It ran alone, and well. */
  behaved(owner: string): void {
    const record = this.#suspects.get(owner);
    if (record === undefined || ++record.goodRuns < record.needed) return;
    this.#suspects.delete(owner);
    this.#revision++;
  }

  /** It ran alone without a fault, but so long that it would stall others: it stays alone. */
  isHeavy(owner: string): void {
    const record = this.#suspects.get(owner);
    if (record !== undefined) record.goodRuns = 0;
  }
}

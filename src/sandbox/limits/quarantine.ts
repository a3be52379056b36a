import { LRUCache } from "lru-cache";
import { entriesMax } from "../../platform/util/loading-cache.ts";

/** A message about an owner, from one process of the node to the others. */
export type QuarantineUpdate =
  /** The owner had this number of requests in a cell that died. */
  | { is: "quarantined"; owner: string; requests: number }
  /** A run of the owner was alone in a cell that died. */
  | { is: "culprit"; owner: string }
  /** The owner had enough runs without a fault. */
  | { is: "trusted"; owner: string };

/** All owners in quarantine, for a process that starts. */
export type QuarantineState = readonly (readonly [owner: string, record: OwnerRecord])[];

interface OwnerRecord {
  /** Runs alone without a fault since the last fault. */
  goodRuns: number;
  /** Good runs after which the owner leaves quarantine. */
  runsNeeded: number;
  /** Faults of runs that were alone in their cell. */
  faults: number;
  /** Requests in flight when the owner was quarantined. Together they may stall a cell, although each alone would not. */
  concurrentRequests: number;
  /** Whether the last good run used so much CPU time that several of them would stall a shared cell. */
  isHeavy: boolean;
}

const faultsRemembered = 6;
/** Time for which a quarantine counts against an owner, even when no fault followed. */
const historyMs = 60_000;

/**
 * Owners whose code may have caused a fault: their requests run in dedicated cells until enough runs were good. Keyed by
 * owner, across all versions of its script.
 */
export class Quarantine {
  readonly #records = new LRUCache<string, OwnerRecord>({ ...entriesMax(10_000), ttl: 3_600_000 });
  /** Number of recent quarantines, by owner. */
  readonly #recentCounts = new LRUCache<string, number>({ ...entriesMax(10_000), ttl: historyMs });
  readonly #runsToTrust: number;
  #revision = 0;
  readonly #send: (update: QuarantineUpdate) => void;

  /** `send` passes this process's findings to the other processes. */
  constructor(runsToTrust: number, send: (update: QuarantineUpdate) => void = () => {}) {
    this.#runsToTrust = runsToTrust;
    this.#send = send;
  }

  /** Applies a finding of another process. */
  receive(update: QuarantineUpdate): void {
    if (update.is === "quarantined") this.#enter(update.owner, update.requests);
    else if (update.is === "culprit") this.#countFault(update.owner);
    else this.#release(update.owner);
  }

  get state(): QuarantineState {
    return [...this.#records.entries()];
  }

  /** Adds all owners that another process has in quarantine. */
  adopt(state: QuarantineState): void {
    for (const [owner, record] of state) if (!this.#records.has(owner)) this.#records.set(owner, record);
    this.#revision++;
  }

  has(owner: string): boolean {
    return this.#records.has(owner);
  }

  /** Whether a fault was certainly the owner's, and it has not been released since. */
  hasFaulted(owner: string): boolean {
    return (this.#records.get(owner)?.faults ?? 0) > 0;
  }

  /** Whether the owner's last run used so much CPU time that several of them would stall a shared cell. */
  isHeavy(owner: string): boolean {
    return this.#records.get(owner)?.isHeavy ?? false;
  }

  /** Whether the owner has shown neither a fault nor a heavy run yet. Most such owners are innocent, and one run may prove it. */
  isUntested(owner: string): boolean {
    const record = this.#records.get(owner);
    return record !== undefined && record.faults === 0 && !record.isHeavy;
  }

  /** Increases with each owner that enters or leaves quarantine. */
  get revision(): number {
    return this.#revision;
  }

  /**
   * Quarantines an owner that had requests in a cell when the cell died, or that used more than its share of CPU time. Most
   * such owners are innocent: the first time one good run is enough, and each recent quarantine multiplies the number by
   * four.
   */
  add(owner: string, concurrentRequests = 1): void {
    if (this.#records.has(owner)) return;
    this.#enter(owner, concurrentRequests);
    this.#send({ is: "quarantined", owner, requests: concurrentRequests });
  }

  #enter(owner: string, concurrentRequests: number): void {
    if (this.#records.has(owner)) return;
    const times = this.#recentCounts.get(owner) ?? 0;
    this.#recentCounts.set(owner, times + 1);
    const runsNeeded = Math.min(4 ** times, this.#runsToTrust);
    this.#records.set(owner, { goodRuns: 0, runsNeeded, faults: 0, concurrentRequests, isHeavy: false });
    this.#revision++;
  }

  /** The owner's run was alone in a cell that died. Each fault doubles the number of good runs needed. */
  recordFault(owner: string): void {
    this.#countFault(owner);
    this.#send({ is: "culprit", owner });
  }

  #countFault(owner: string): void {
    if (!this.#records.has(owner)) this.#revision++;
    const faults = Math.min((this.#records.get(owner)?.faults ?? 0) + 1, faultsRemembered);
    const runsNeeded = this.#runsToTrust * 2 ** faults;
    this.#records.set(owner, { goodRuns: 0, runsNeeded, faults, concurrentRequests: 1, isHeavy: false });
  }

  /** The owner ran alone without a fault. A run that would stall a shared cell does not count as good. */
  recordRun(owner: string, cpuMs: number, stallCpuMs: number): void {
    const record = this.#records.get(owner);
    if (record === undefined) return;
    record.isHeavy = cpuMs * record.concurrentRequests > stallCpuMs / 2;
    if (record.isHeavy) record.goodRuns = 0;
    else this.recordSuccess(owner);
  }

  /** Counts a good run, and releases the owner when there were enough. */
  recordSuccess(owner: string): void {
    const record = this.#records.get(owner);
    if (record === undefined || ++record.goodRuns < record.runsNeeded) return;
    this.#release(owner);
    this.#send({ is: "trusted", owner });
  }

  #release(owner: string): void {
    if (this.#records.delete(owner)) this.#revision++;
  }
}

import { merge, type WriteBatch, type InstanceChange } from "./batch.ts";
import type { Clock } from "../../../platform/timers/clock.ts";
import { vital } from "../../../platform/util/uncaught.ts";

/** The right to write for a shard. Each takeover starts a new term. */
export interface Lease {
  shard: number;
  term: number;
}

/**
 * Writes one batch durably. Resolves with the row id of each create, or null when its id was taken or its
 * workflow deleted.
 */
export type Commit = (batch: WriteBatch, leases: readonly Lease[]) => Promise<(number | null)[]>;

/** Thrown by a commit when a lease that it needs was lost. None of the batch was written. */
export class FencedError extends Error {
  readonly leases: readonly Lease[];
  constructor(leases: readonly Lease[]) {
    super(`The leases of shards ${leases.map(({ shard }) => shard).join(", ")} were lost`);
    this.leases = leases;
  }
}

/** The database is in an earlier state than this node's last commit, so that nothing in memory is reliable. */
export class StateLost extends FencedError {}

/** Thrown by refusable appends while the database accepts no writes. */
export class StorageFaultError extends Error {
  constructor(cause: unknown) {
    super("The database accepts no writes at the moment", { cause });
  }
}

/** Thrown for changes that the database refuses permanently. None of them was written. */
export class RefusedWriteError extends Error {
  constructor(cause: unknown) {
    super("The database refuses the write", { cause });
  }
}

interface Group {
  lease: Lease | undefined;
  changes: readonly InstanceChange[];
  refusable: boolean;
  resolve(created: (number | null)[]): void;
  reject(error: Error): void;
}

const changesPerCommitMax = 2048;
const retryMsMin = 50;
const retryMsMax = 1000;

/**
 * Writes changes in groups: all appends during one commit form the next. Nothing is acknowledged before it is
 * durable. When the database fails, refusable appends are rejected and the others wait. When the database
 * refuses a group permanently, its appends are written one by one, so that the refused append does not block
 * the others.
 */
export class JournalWriter {
  readonly #commit: Commit;
  readonly #clock: Clock;
  readonly #onFault: (error: unknown) => void;
  /** The term of each shard that this node holds; empty for a single node. */
  readonly terms = new Map<number, number>();
  /** Called with shards whose leases were lost. State in memory of their instances is no longer reliable. */
  onFenced: (shards: readonly number[]) => void = () => {};
  readonly #leases = new Map<number, Lease>();
  #pending: Group[] = [];
  /** Appends to write one by one, because the database refuses one of them. */
  #singly = 0;
  #isFlushing = false;
  #fault: unknown;
  #retryMs = retryMsMin;
  /** For the benchmark: the number of commits and of their changes. */
  readonly counts = { commits: 0, changes: 0 };

  constructor(commit: Commit, clock: Clock, onFault: (error: unknown) => void) {
    this.#commit = commit;
    this.#clock = clock;
    this.#onFault = onFault;
  }

  /** Whether no write is pending. */
  get isIdle(): boolean {
    return !this.#isFlushing;
  }

  /** Throws while appended changes wait for the database to recover. */
  refuseDuringFault(): void {
    if (this.#fault !== undefined && this.#pending.length > 0) throw new StorageFaultError(this.#fault);
  }

  /**
   * Commits the changes together. A `refusable` append fails with StorageFaultError while the database fails;
   * others wait. Rejects with FencedError when the shard's lease was lost, and with RefusedWriteError when
   * the database refuses these changes permanently.
   */
  async append(
    shard: number | undefined,
    changes: readonly InstanceChange[],
    refusable = false,
  ): Promise<(number | null)[]> {
    if (refusable) this.refuseDuringFault();
    return new Promise((resolve, reject) => {
      this.#pending.push({ lease: this.#lease(shard), changes, refusable, resolve, reject });
      this.#start();
    });
  }

  /** Resolves when everything appended before the call is durable. */
  async drain(): Promise<void> {
    if (this.#pending.length > 0 || this.#isFlushing) await this.append(undefined, []);
  }

  /** One object per term, so that leases can be compared by identity. */
  #lease(shard: number | undefined): Lease | undefined {
    if (shard === undefined) return undefined;
    const term = this.terms.get(shard) ?? 0;
    let lease = this.#leases.get(shard);
    if (lease?.term !== term) this.#leases.set(shard, (lease = { shard, term }));
    return lease;
  }

  #start(): void {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    // Deferred, so that changes of one turn of the event loop are in the same commit.
    this.#clock.soon(() => {
      vital("Writing the journal of workflows", this.#flush());
    });
  }

  async #flush(): Promise<void> {
    const groups = this.#take();
    try {
      const batch = merge(groups.flatMap((group) => group.changes));
      const leases = [...new Set(groups.flatMap(({ lease }) => lease ?? []))];
      const created = leases.length === 0 ? [] : await this.#commit(batch, leases);
      this.counts.commits++;
      this.#fault = undefined;
      this.#retryMs = retryMsMin;
      let at = 0;
      for (const group of groups) {
        const count = group.changes.filter((change) => change.kind === "create").length;
        this.counts.changes += group.changes.length;
        group.resolve(created.slice(at, (at += count)));
      }
    } catch (error) {
      this.#failed(groups, error);
      return;
    }
    this.#next();
  }

  #take(): Group[] {
    if (this.#singly > 0) {
      this.#singly--;
      return this.#pending.splice(0, 1);
    }
    let changes = 0;
    let count = 0;
    while (count < this.#pending.length && changes < changesPerCommitMax) {
      changes += this.#pending[count++]!.changes.length;
    }
    return this.#pending.splice(0, count);
  }

  #next(): void {
    if (this.#pending.length > 0)
      this.#clock.soon(() => {
        vital("Writing the journal of workflows", this.#flush());
      });
    else this.#isFlushing = false;
  }

  #failed(groups: Group[], error: unknown): void {
    if (error instanceof StateLost) {
      this.onFenced([...this.terms.keys()]);
      for (const group of [...groups, ...this.#pending.splice(0)])
        if (group.lease === undefined) group.resolve([]);
        else group.reject(error);
      return this.#next();
    }
    if (error instanceof FencedError) {
      this.onFenced(error.leases.map(({ shard }) => shard));
      const isLost = ({ lease }: Group): boolean => lease !== undefined && error.leases.includes(lease);
      for (const group of groups) if (isLost(group)) group.reject(error);
      this.#pending.unshift(...groups.filter((group) => !isLost(group)));
      return this.#next();
    }
    if (error instanceof RefusedWriteError) {
      if (groups.length === 1) groups[0]!.reject(error);
      else {
        this.#pending.unshift(...groups);
        this.#singly = groups.length;
      }
      return this.#next();
    }
    if (this.#fault === undefined) this.#onFault(error);
    this.#fault = error;
    for (const group of groups) if (group.refusable) group.reject(new StorageFaultError(error));
    this.#pending.unshift(...groups.filter((group) => !group.refusable));
    this.#clock.after(this.#retryMs, () => this.#next());
    this.#retryMs = Math.min(this.#retryMs * 2, retryMsMax);
  }
}

import { merge, type Batch, type Change } from "./batch.ts";
import type { Clock } from "./clock.ts";

/** The right to write for a shard. Each time that a node takes it there is another term. */
export interface Lease {
  shard: number;
  term: number;
}

/** Durably writes one batch; resolves with the rid of each create, or null where its id was taken. */
export type Commit = (batch: Batch, leases: readonly Lease[]) => Promise<(number | null)[]>;

/** Thrown by a commit when leases that it needs are gone: nothing of it was written. */
export class FencedError extends Error {
  readonly leases: readonly Lease[];
  constructor(leases: readonly Lease[]) {
    super(`The leases of shards ${leases.map(({ shard }) => shard).join(", ")} are gone`);
    this.leases = leases;
  }
}

/** What an append is refused with while the database does not take writes. */
export class StorageFaultError extends Error {
  constructor(cause: unknown) {
    super("The database does not take writes at the moment", { cause });
  }
}

/** Thrown for changes that the database refuses, and always will; nothing of them was written. */
export class RefusedWriteError extends Error {
  constructor(cause: unknown) {
    super("The database refuses what is to be written", { cause });
  }
}

interface Group {
  lease: Lease | undefined;
  changes: readonly Change[];
  refusable: boolean;
  resolve(created: (number | null)[]): void;
  reject(error: Error): void;
}

const changesPerCommitMax = 2048;
const retryMsMin = 50;
const retryMsMax = 1000;

/**
 * Writes changes in groups: everything that is appended while one commit is under way is the next one. Nothing is ever
 * acknowledged before it is durable. When the database fails, what may be refused is refused, everything else waits.
 * What the database refuses for good is found by writing its group's appends one by one, so that it stops no other.
 */
export class JournalWriter {
  readonly #commit: Commit;
  readonly #clock: Clock;
  readonly #onFault: (error: unknown) => void;
  /** The terms of the shards that this node holds; where it is the only one there are none. */
  readonly terms = new Map<number, number>();
  /** Called with shards whose leases are gone: nothing that is known of their instances is sure any more. */
  onFenced: (shards: readonly number[]) => void = () => {};
  readonly #leases = new Map<number, Lease>();
  #pending: Group[] = [];
  /** So many are written one by one: the database refuses something in them. */
  #singly = 0;
  #isFlushing = false;
  #fault: unknown;
  #retryMs = retryMsMin;
  /** For the benchmark: commits, and the changes in them. */
  readonly counts = { commits: 0, changes: 0 };

  constructor(commit: Commit, clock: Clock, onFault: (error: unknown) => void) {
    this.#commit = commit;
    this.#clock = clock;
    this.#onFault = onFault;
  }

  /** Whether nobody else writes, so that the machine has time. */
  get isIdle(): boolean {
    return !this.#isFlushing;
  }

  /** Throws while what has been appended waits for the database to take it. */
  refuseDuringFault(): void {
    if (this.#fault !== undefined && this.#pending.length > 0) throw new StorageFaultError(this.#fault);
  }

  /**
   * Commits the changes together. A `refusable` append fails with StorageFaultError when the database does; others wait
   * for it to recover. Rejects with FencedError when the shard is no longer ours, and with RefusedWriteError when the
   * database never takes these changes.
   */
  async append(
    shard: number | undefined,
    changes: readonly Change[],
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

  /** One object for each term, so that leases are told apart by identity. */
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
    // Not at once: what arrived in the same turn of the event loop belongs into the same commit.
    this.#clock.soon(() => void this.#flush());
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
    if (this.#pending.length > 0) this.#clock.soon(() => void this.#flush());
    else this.#isFlushing = false;
  }

  #failed(groups: Group[], error: unknown): void {
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

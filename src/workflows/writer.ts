import { merge, type Batch, type Change } from "./batch.ts";
import type { Clock } from "./clock.ts";

/** Durably writes one batch; resolves with the rid of each create, or null where its id was taken. */
export type Commit = (batch: Batch, shards: readonly number[]) => Promise<(number | null)[]>;

/** Thrown by a commit when another node has taken the shards over: nothing of it was written. */
export class FencedError extends Error {
  readonly shards: readonly number[];
  constructor(shards: readonly number[]) {
    super(`The leases of shards ${shards.join(", ")} are gone`);
    this.shards = shards;
  }
}

/** What an append is refused with while the database does not take writes. */
export class StorageFaultError extends Error {
  constructor(cause: unknown) {
    super("The database does not take writes at the moment", { cause });
  }
}

interface Group {
  shard: number;
  changes: readonly Change[];
  refusable: boolean;
  resolve(created: (number | null)[]): void;
  reject(error: Error): void;
}

const changesPerCommitMax = 2048;
const lazyMs = 100;
const retryMsMin = 50;
const retryMsMax = 1000;

/**
 * Writes changes in groups: everything that is appended while one commit is under way is the next one. Nothing is ever
 * acknowledged before it is durable. When the database fails, what may be refused is refused, everything else waits.
 */
export class JournalWriter {
  readonly #commit: Commit;
  readonly #clock: Clock;
  readonly #onFault: (error: unknown) => void;
  #pending: Group[] = [];
  #isFlushing = false;
  #isSoonDue = false;
  #fault: unknown;
  #retryMs = retryMsMin;
  /** For the benchmark: commits, and the changes in them. */
  readonly counts = { commits: 0, changes: 0 };

  constructor(commit: Commit, clock: Clock, onFault: (error: unknown) => void) {
    this.#commit = commit;
    this.#clock = clock;
    this.#onFault = onFault;
  }

  /** Throws while what has been appended waits for the database to take it. */
  refuseDuringFault(): void {
    if (this.#fault !== undefined && this.#pending.length > 0) throw new StorageFaultError(this.#fault);
  }

  /**
   * Commits the changes together. A `refusable` append fails with StorageFaultError when the database does; others wait
   * for it to recover. Rejects with FencedError when the shard is no longer ours.
   */
  async append(shard: number, changes: readonly Change[], refusable = false): Promise<(number | null)[]> {
    if (refusable) this.refuseDuringFault();
    return new Promise((resolve, reject) => {
      this.#pending.push({ shard, changes, refusable, resolve, reject });
      this.#start();
    });
  }

  /** Commits with whatever comes next, or soon: for what nobody waits for. */
  appendLazily(shard: number, changes: readonly Change[]): Promise<void> {
    if (!this.#isSoonDue) {
      this.#isSoonDue = true;
      this.#clock.after(lazyMs, () => {
        this.#isSoonDue = false;
        if (this.#pending.length > 0) this.#start();
      });
    }
    return new Promise((resolve) => {
      const done = (): void => resolve();
      this.#pending.push({ shard, changes, refusable: false, resolve: done, reject: done });
    });
  }

  /** Resolves when everything appended before the call is durable. */
  async drain(): Promise<void> {
    if (this.#pending.length > 0 || this.#isFlushing) await this.append(-1, []);
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
      const shards = [...new Set(groups.map((group) => group.shard))].filter((shard) => shard >= 0);
      const created = shards.length === 0 ? [] : await this.#commit(batch, shards);
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
      const lost = new Set(error.shards);
      for (const group of groups) if (lost.has(group.shard)) group.reject(error);
      this.#pending.unshift(...groups.filter((group) => !lost.has(group.shard)));
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

/** The job that a part of the spool belongs to. */
export interface SpoolOwner {
  /** Of the job. */
  id: number;
  accountId: string;
}

/** A file counts as at least so much, which bounds the number of files. */
const fileBytesMin = 64 * 1024;

/** The bytes that a file counts as. */
export const counted = (fileBytes: number): number => Math.max(fileBytes, fileBytesMin);

/** With fewer accounts, an account's own part is as large as with so many, so that there is room for new ones. */
const accountsMin = 16;
/** The part of the spool that is common. */
const commonPart = 7 / 16;

interface Usage {
  bytes: number;
  byJob: Map<number, number>;
}

/**
 * The room of the spool, divided. One half is divided equally between the accounts that have jobs, and no other account takes
 * of such a part. Most of the other half is common: an account takes at most as much of it as it leaves free. In the same
 * way, a job takes at most as much of what its account may have as it leaves free. The rest is for accounts that come when the
 * own parts, which were larger before them, are in use: each takes at most as much of what is free as it leaves.
 */
export class SpoolShares {
  readonly #bytesMax: number;
  #active: ReadonlySet<string> = new Set();
  #usages = new Map<string, Usage>();
  /** Of all accounts. */
  #bytes = 0;
  /** The own part of each account. */
  #ownMax = 0;
  /** Bytes above the own parts. */
  #common = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#divide();
  }

  /** Says which accounts have jobs that collect. */
  setActive(accountIds: Iterable<string>): void {
    this.#active = new Set(accountIds);
    this.#divide();
  }

  /** Says what all files together count as. */
  setUsed(files: Iterable<readonly [owner: SpoolOwner, bytes: number]>): void {
    this.#usages = new Map();
    for (const [{ id, accountId }, bytes] of files) {
      const { byJob } = this.#usageOf(accountId);
      byJob.set(id, (byJob.get(id) ?? 0) + bytes);
    }
    for (const usage of this.#usages.values()) usage.bytes = sum(usage.byJob.values());
    this.#divide();
  }

  /** Notes that the files of a job count as more, or as less. */
  add({ id, accountId }: SpoolOwner, bytes: number): void {
    const isNew = !this.#usages.has(accountId);
    const usage = this.#usageOf(accountId);
    const before = usage.byJob.get(id) ?? 0;
    const change = Math.max(bytes, -before);
    usage.byJob.set(id, before + change);
    this.#common += this.#aboveOwn(usage.bytes + change) - this.#aboveOwn(usage.bytes);
    usage.bytes += change;
    this.#bytes += change;
    if (isNew) this.#divide();
  }

  /** Whether a job may write more. Called for each event. */
  hasRoom({ id, accountId }: SpoolOwner): boolean {
    const usage = this.#usages.get(accountId);
    const bytes = usage?.bytes ?? 0;
    const ofOthers = this.#common - this.#aboveOwn(bytes);
    const max = this.#ownMax + Math.max((this.#bytesMax * commonPart - ofOthers) / 2, 0);
    return bytes < this.#bytesMax - this.#bytes && (usage?.byJob.get(id) ?? 0) < max - bytes;
  }

  #aboveOwn(bytes: number): number {
    return Math.max(bytes - this.#ownMax, 0);
  }

  #usageOf(accountId: string): Usage {
    let usage = this.#usages.get(accountId);
    if (usage === undefined) this.#usages.set(accountId, (usage = { bytes: 0, byJob: new Map() }));
    return usage;
  }

  #divide(): void {
    const accounts = new Set([...this.#active, ...this.#usages.keys()]);
    this.#ownMax = this.#bytesMax / 2 / Math.max(accounts.size, accountsMin);
    this.#bytes = sum(this.#usages.values().map(({ bytes }) => bytes));
    this.#common = sum(this.#usages.values().map(({ bytes }) => this.#aboveOwn(bytes)));
  }
}

const sum = (values: Iterable<number>): number => {
  let all = 0;
  for (const value of values) all += value;
  return all;
};

import type { Cost } from "./cost.ts";

export interface ImageAdmissionLimits {
  /** Concurrent jobs. */
  slots: number;
  memoryBytes: number;
  /** Jobs that may wait. */
  queueMax: number;
}

interface WaitingJob {
  owner: Owner;
  cost: Cost;
  isAlone: boolean;
  /** Position among its owner's jobs: expensive jobs are queued as if they had arrived later, so that none starves. */
  due: number;
  start: () => void;
  refuse: () => void;
}

/** An account with jobs that wait or run. */
interface Owner {
  /** Sorted by `due`. */
  queue: WaitingJob[];
  running: number;
  /** Milliseconds that its jobs have taken, compared with those of other owners. */
  spentMs: number;
}

export class QueueFull extends Error {
  readonly retryAfterSeconds: number;
  constructor(retryAfterSeconds: number) {
    super("the queue is full");
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/**
 * Runs as many jobs as cores and memory allow. Accounts take turns, so that each gets an equal part of the time while it has
 * jobs. Of one account's jobs, cheap ones overtake expensive ones for a limited time.
 */
export class ImageAdmission {
  readonly #limits: ImageAdmissionLimits;
  readonly #owners = new Map<string, Owner>();
  #waiting = 0;
  #running = 0;
  #isAlone = false;
  #memoryBytes = 0;

  constructor(limits: ImageAdmissionLimits) {
    this.#limits = limits;
  }

  get load(): { running: number; waiting: number } {
    return { running: this.#running, waiting: this.#waiting };
  }

  /**
   * Resolves, once the job of an account may run, with the function that ends it. Throws `QueueFull`, or the signal's
   * reason when the caller leaves while the job waits. With `isAlone`, no other job runs at the same time;
   * such a job was admitted before, so it is not refused now.
   */
  async enter(accountId: string, cost: Cost, signal?: AbortSignal, isAlone = false): Promise<() => void> {
    signal?.throwIfAborted();
    if (!isAlone && this.#waiting >= this.#limits.queueMax) this.#makeRoom(accountId);
    const owner = this.#ownerOf(accountId);
    const { promise, resolve, reject } = Promise.withResolvers<() => void>();
    const done = (): void => signal?.removeEventListener("abort", leave);
    const waiting: WaitingJob = {
      owner,
      cost,
      isAlone,
      due: performance.now() + cost.cpuMs,
      start: () => {
        done();
        resolve(this.#begin(accountId, owner, cost, isAlone));
      },
      refuse: () => {
        done();
        reject(new QueueFull(this.#waitSeconds()));
      },
    };
    const leave = (): void => {
      this.#drop(waiting);
      this.#forget(accountId, owner);
      reject(signal!.reason as Error);
      this.#admit();
    };
    signal?.addEventListener("abort", leave, { once: true });
    const index = owner.queue.findIndex((other) => other.due > waiting.due);
    owner.queue.splice(index < 0 ? owner.queue.length : index, 0, waiting);
    this.#waiting++;
    this.#admit();
    return promise;
  }

  /** An owner that comes back begins where the others are: time without jobs earns nothing. */
  #ownerOf(accountId: string): Owner {
    let owner = this.#owners.get(accountId);
    if (owner !== undefined) return owner;
    const spentMs = Math.min(...[...this.#owners.values()].map((other) => other.spentMs));
    owner = { queue: [], running: 0, spentMs: Number.isFinite(spentMs) ? spentMs : 0 };
    this.#owners.set(accountId, owner);
    return owner;
  }

  #forget(accountId: string, { queue, running }: Owner): void {
    if (queue.length === 0 && running === 0) this.#owners.delete(accountId);
  }

  /** In a full queue, an account gets a place from the account that has most of them. Throws if that is itself. */
  #makeRoom(accountId: string): void {
    const own = this.#owners.get(accountId)?.queue.length ?? 0;
    const lengths = [...this.#owners.values()].map(({ queue }) => queue.length);
    const most = [...this.#owners.values()].find(({ queue }) => queue.length === Math.max(...lengths));
    const last = most?.queue.findLast(({ isAlone }) => !isAlone);
    if (last === undefined || most!.queue.length <= own + 1) throw new QueueFull(this.#waitSeconds());
    this.#drop(last);
    last.refuse();
  }

  #drop(job: WaitingJob): void {
    job.owner.queue.splice(job.owner.queue.indexOf(job), 1);
    this.#waiting--;
  }

  /** Returns the function that ends the job. */
  #begin(accountId: string, owner: Owner, cost: Cost, isAlone: boolean): () => void {
    this.#running++;
    owner.running++;
    owner.spentMs += cost.cpuMs;
    this.#isAlone = isAlone;
    this.#memoryBytes += cost.memoryBytes;
    const startedAt = performance.now();
    return () => {
      this.#running--;
      owner.running--;
      // A picture may take far longer than its header lets expect.
      owner.spentMs += Math.max(0, performance.now() - startedAt - cost.cpuMs);
      this.#isAlone = false;
      this.#memoryBytes -= cost.memoryBytes;
      this.#forget(accountId, owner);
      this.#admit();
    };
  }

  #admit(): void {
    for (let next = this.#next(); next !== undefined && this.#hasRoomFor(next); next = this.#next()) {
      this.#drop(next);
      next.start();
    }
  }

  /** The first job of the account that has spent least. */
  #next(): WaitingJob | undefined {
    let first: Owner | undefined;
    for (const owner of this.#owners.values())
      if (owner.queue.length > 0 && (first === undefined || owner.spentMs < first.spentMs)) first = owner;
    return first?.queue[0];
  }

  #hasRoomFor({ cost, isAlone }: WaitingJob): boolean {
    if (this.#running === 0) return true;
    if (isAlone || this.#isAlone || this.#running >= this.#limits.slots) return false;
    return this.#memoryBytes + cost.memoryBytes <= this.#limits.memoryBytes;
  }

  #waitSeconds(): number {
    const jobs = [...this.#owners.values()].flatMap(({ queue }) => queue);
    const queuedMs = jobs.reduce((sum, { cost }) => sum + cost.cpuMs, 0);
    return Math.max(1, Math.ceil(queuedMs / this.#limits.slots / 1000));
  }
}

import type { Cost } from "./cost.ts";

export interface ImageAdmissionLimits {
  /** Concurrent jobs. */
  slots: number;
  memoryBytes: number;
  /** Jobs that may wait. */
  queueMax: number;
}

interface WaitingJob {
  cost: Cost;
  isAlone: boolean;
  /** Position in the queue: expensive jobs are queued as if they had arrived later, so that none starves. */
  due: number;
  start: () => void;
}

export class QueueFull extends Error {
  readonly retryAfterSeconds: number;
  constructor(retryAfterSeconds: number) {
    super("the queue is full");
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** Runs as many jobs as cores and memory allow. Cheap jobs overtake expensive ones for a limited time. */
export class ImageAdmission {
  readonly #limits: ImageAdmissionLimits;
  readonly #queue: WaitingJob[] = [];
  #running = 0;
  #isAlone = false;
  #memoryBytes = 0;

  constructor(limits: ImageAdmissionLimits) {
    this.#limits = limits;
  }

  get load(): { running: number; waiting: number } {
    return { running: this.#running, waiting: this.#queue.length };
  }

  /**
   * Resolves, once the job may run, with the function that ends it. Throws `QueueFull`, or the signal's
   * reason when the caller leaves while the job waits. With `isAlone`, no other job runs at the same time;
   * such a job was admitted before, so it is not refused now.
   */
  async enter(cost: Cost, signal?: AbortSignal, isAlone = false): Promise<() => void> {
    signal?.throwIfAborted();
    if (!isAlone && this.#queue.length >= this.#limits.queueMax) throw new QueueFull(this.#waitSeconds());
    const { promise, resolve, reject } = Promise.withResolvers<() => void>();
    const waiting: WaitingJob = {
      cost,
      isAlone,
      due: performance.now() + cost.cpuMs,
      start: () => {
        signal?.removeEventListener("abort", leave);
        this.#running += 1;
        this.#isAlone = isAlone;
        this.#memoryBytes += cost.memoryBytes;
        resolve(() => this.#end(cost));
      },
    };
    const leave = (): void => {
      this.#queue.splice(this.#queue.indexOf(waiting), 1);
      reject(signal!.reason as Error);
      this.#admit();
    };
    signal?.addEventListener("abort", leave, { once: true });
    const index = this.#queue.findIndex((other) => other.due > waiting.due);
    this.#queue.splice(index < 0 ? this.#queue.length : index, 0, waiting);
    this.#admit();
    return promise;
  }

  #end(cost: Cost): void {
    this.#running -= 1;
    this.#isAlone = false;
    this.#memoryBytes -= cost.memoryBytes;
    this.#admit();
  }

  #admit(): void {
    for (let next = this.#queue[0]; next !== undefined && this.#hasRoomFor(next); next = this.#queue[0]) {
      this.#queue.shift();
      next.start();
    }
  }

  #hasRoomFor({ cost, isAlone }: WaitingJob): boolean {
    if (this.#running === 0) return true;
    if (isAlone || this.#isAlone || this.#running >= this.#limits.slots) return false;
    return this.#memoryBytes + cost.memoryBytes <= this.#limits.memoryBytes;
  }

  #waitSeconds(): number {
    const queuedMs = this.#queue.reduce((sum, { cost }) => sum + cost.cpuMs, 0);
    return Math.max(1, Math.ceil(queuedMs / this.#limits.slots / 1000));
  }
}

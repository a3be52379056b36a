import type { Cost } from "./cost.ts";

export interface AdmissionLimits {
  /** Jobs at a time. */
  slots: number;
  memoryBytes: number;
  /** Jobs that may wait. */
  queueMax: number;
}

interface Waiting {
  cost: Cost;
  isAlone: boolean;
  /** When its turn comes: dear jobs are served as if they had come later, so that none waits for ever. */
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

/** Lets as many jobs run as there are cores, and memory for. What is cheap overtakes what is dear, for a while. */
export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #queue: Waiting[] = [];
  #running = 0;
  #isAlone = false;
  #memoryBytes = 0;

  constructor(limits: AdmissionLimits) {
    this.#limits = limits;
  }

  get load(): { running: number; waiting: number } {
    return { running: this.#running, waiting: this.#queue.length };
  }

  /**
   * Resolves with the function that ends the job, once it may run. Throws `QueueFull`, or the signal's reason when the
   * caller leaves while it waits. One that runs alone shares the engine with no other.
   */
  async enter(cost: Cost, signal?: AbortSignal, isAlone = false): Promise<() => void> {
    signal?.throwIfAborted();
    if (this.#queue.length >= this.#limits.queueMax) throw new QueueFull(this.#waitSeconds());
    const { promise, resolve, reject } = Promise.withResolvers<() => void>();
    const waiting: Waiting = {
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
    const place = this.#queue.findIndex((other) => other.due > waiting.due);
    this.#queue.splice(place < 0 ? this.#queue.length : place, 0, waiting);
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
    for (let next = this.#queue[0]; next !== undefined && this.#fits(next); next = this.#queue[0]) {
      this.#queue.shift();
      next.start();
    }
  }

  #fits({ cost, isAlone }: Waiting): boolean {
    if (this.#running === 0) return true;
    if (isAlone || this.#isAlone || this.#running >= this.#limits.slots) return false;
    return this.#memoryBytes + cost.memoryBytes <= this.#limits.memoryBytes;
  }

  #waitSeconds(): number {
    const queuedMs = this.#queue.reduce((sum, { cost }) => sum + cost.cpuMs, 0);
    return Math.max(1, Math.ceil(queuedMs / this.#limits.slots / 1000));
  }
}

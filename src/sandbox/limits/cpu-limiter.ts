import { Worker } from "node:worker_threads";
import { moduleUrl } from "../../platform/util/module-url.ts";

/** Memory shared with the CPU limiter thread: one slot for each watched process. */
export interface CpuLimiterMemory {
  states: Int32Array<SharedArrayBuffer>;
  pids: Int32Array<SharedArrayBuffer>;
  /** CPU time of the process at which it is stopped. */
  endsMs: Float64Array<SharedArrayBuffer>;
  /** Counts changes; the thread sleeps on it. */
  changes: Int32Array<SharedArrayBuffer>;
}
export const limiterState = { free: 0, on: 1, stopping: 2, stopped: 3 } as const;

const slots = 64;
const shared = (bytes: number): SharedArrayBuffer => new SharedArrayBuffer(bytes);

/** Started with the first watched process. The thread sleeps while there is none. */
let known: { memory: CpuLimiterMemory; thread: Worker } | undefined;

function start(): CpuLimiterMemory {
  if (known !== undefined) return known.memory;
  const memory: CpuLimiterMemory = {
    states: new Int32Array(shared(slots * 4)),
    pids: new Int32Array(shared(slots * 4)),
    endsMs: new Float64Array(shared(slots * 8)),
    changes: new Int32Array(shared(4)),
  };
  const thread = new Worker(moduleUrl("sandbox/limits/cpu-limiter-thread"), {
    workerData: memory,
    name: "cpu-limiter",
  });
  // Without the thread limits are less exact, but still enforced.
  thread.on("error", () => (known = undefined)).unref();
  known = { memory, thread };
  return memory;
}

/**
 * Stops a process as soon as it has used its CPU time, so that limits are exact even when this thread is
 * busy, for example with garbage collection or with starting another process. This thread decides later what
 * to do with the stopped process.
 */
export class CpuLimiter {
  readonly #memory: CpuLimiterMemory;
  readonly #slot: number;
  readonly #pid: number;

  private constructor(memory: CpuLimiterMemory, slot: number, pid: number) {
    this.#memory = memory;
    this.#slot = slot;
    this.#pid = pid;
  }

  /** Starts watching a process. Returns undefined if all slots are in use. */
  static on(pid: number, endMs: number): CpuLimiter | undefined {
    const memory = start();
    const slot = memory.states.indexOf(limiterState.free);
    if (slot < 0) return undefined;
    memory.pids[slot] = pid;
    const limiter = new CpuLimiter(memory, slot, pid);
    limiter.#set(endMs);
    return limiter;
  }

  /** Sets a new limit, and resumes the process if it was stopped. */
  moveTo(endMs: number): void {
    const { states, endsMs } = this.#memory;
    if (Atomics.load(states, this.#slot) === limiterState.on) endsMs[this.#slot] = endMs;
    else {
      this.#letGo();
      this.#set(endMs);
    }
  }

  release(): void {
    this.#letGo();
    Atomics.store(this.#memory.states, this.#slot, limiterState.free);
  }

  #set(endMs: number): void {
    const { states, endsMs, changes } = this.#memory;
    endsMs[this.#slot] = endMs;
    Atomics.store(states, this.#slot, limiterState.on);
    Atomics.add(changes, 0, 1);
    Atomics.notify(changes, 0);
  }

  /** Resumes the process if it was stopped. After this the other thread leaves the process alone. */
  #letGo(): void {
    const { states } = this.#memory;
    const { on, stopping, stopped, free } = limiterState;
    if (Atomics.compareExchange(states, this.#slot, on, free) === on) return;
    while (Atomics.load(states, this.#slot) === stopping) Atomics.wait(states, this.#slot, stopping, 1);
    if (Atomics.load(states, this.#slot) !== stopped) return;
    try {
      process.kill(this.#pid, "SIGCONT");
    } catch {
      // the process has ended
    }
  }
}

import { Worker } from "node:worker_threads";

/** What this thread and that of the brakes have in common: a slot for each process that is watched. */
export interface BrakeMemory {
  states: Int32Array<SharedArrayBuffer>;
  pids: Int32Array<SharedArrayBuffer>;
  /** CPU time of the process at which it is to stand. */
  endsMs: Float64Array<SharedArrayBuffer>;
  /** Counts changes, for the thread that waits for one. */
  changes: Int32Array<SharedArrayBuffer>;
}
export const brakeState = { free: 0, on: 1, stopping: 2, stopped: 3 } as const;

const slots = 64;
const shared = (bytes: number): SharedArrayBuffer => new SharedArrayBuffer(bytes);

/** Started with the first process that is watched; it sleeps when there is none. */
let known: { memory: BrakeMemory; thread: Worker } | undefined;

function start(): BrakeMemory {
  if (known !== undefined) return known.memory;
  const memory: BrakeMemory = {
    states: new Int32Array(shared(slots * 4)),
    pids: new Int32Array(shared(slots * 4)),
    endsMs: new Float64Array(shared(slots * 8)),
    changes: new Int32Array(shared(4)),
  };
  const thread = new Worker(new URL("./brake-thread.ts", import.meta.url), {
    workerData: memory,
    name: "brakes",
  });
  // Without it limits are coarser, and hold all the same.
  thread.on("error", () => (known = undefined)).unref();
  known = { memory, thread };
  return memory;
}

/**
 * Makes a process stand still the moment it has had its CPU time, so that a limit is exact however busy this thread is: with
 * a collection, or with starting another process. What becomes of it is decided here, in its own time.
 */
export class Brake {
  readonly #memory: BrakeMemory;
  readonly #slot: number;
  readonly #pid: number;

  private constructor(memory: BrakeMemory, slot: number, pid: number) {
    this.#memory = memory;
    this.#slot = slot;
    this.#pid = pid;
  }

  /** Undefined where too many are watched already. */
  static on(pid: number, endMs: number): Brake | undefined {
    const memory = start();
    const slot = memory.states.indexOf(brakeState.free);
    if (slot < 0) return undefined;
    memory.pids[slot] = pid;
    const brake = new Brake(memory, slot, pid);
    brake.#set(endMs);
    return brake;
  }

  /** It may go on until it has had so much. */
  moveTo(endMs: number): void {
    const { states, endsMs } = this.#memory;
    if (Atomics.load(states, this.#slot) === brakeState.on) endsMs[this.#slot] = endMs;
    else {
      this.#letGo();
      this.#set(endMs);
    }
  }

  release(): void {
    this.#letGo();
    Atomics.store(this.#memory.states, this.#slot, brakeState.free);
  }

  #set(endMs: number): void {
    const { states, endsMs, changes } = this.#memory;
    endsMs[this.#slot] = endMs;
    Atomics.store(states, this.#slot, brakeState.on);
    Atomics.add(changes, 0, 1);
    Atomics.notify(changes, 0);
  }

  /** After this the other thread does nothing about the process. */
  #letGo(): void {
    const { states } = this.#memory;
    const { on, stopping, stopped, free } = brakeState;
    if (Atomics.compareExchange(states, this.#slot, on, free) === on) return;
    while (Atomics.load(states, this.#slot) === stopping) Atomics.wait(states, this.#slot, stopping, 1);
    if (Atomics.load(states, this.#slot) !== stopped) return;
    try {
      process.kill(this.#pid, "SIGCONT");
    } catch {
      // it has ended
    }
  }
}

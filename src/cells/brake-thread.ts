import { readlinkSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { workerData } from "node:worker_threads";
import { brakeState, type BrakeMemory } from "./brake.ts";
import { CpuClock, tickMsMax } from "./cpu-clock.ts";

/* Looks at the CPU time of processes, and stops each the moment it has had what it may. */

const { states, pids, endsMs, changes } = workerData as BrakeMemory;
const { on, stopping, stopped } = brakeState;
const sleepMsMin = 0.1;
const sleepMsMax = 1;

interface Watched {
  pid: number;
  /** Undefined where the process was gone before it was looked at. */
  clock: CpuClock | undefined;
}
const watched: (Watched | undefined)[] = [];

comeFirst();
for (;;) {
  const change = Atomics.load(changes, 0);
  let sleepMs = Infinity;
  for (let slot = 0; slot < states.length; slot++) sleepMs = Math.min(sleepMs, look(slot));
  Atomics.wait(changes, 0, change, sleepMs);
}

/** Whoever stops others is not to wait until they have had their slice of a processor; where that is not allowed, it does. */
function comeFirst(): void {
  try {
    setPriority(
      Number(readlinkSync("/proc/thread-self").split("/").at(-1)),
      constants.priority.PRIORITY_HIGHEST,
    );
  } catch {
    // limits are a few milliseconds coarser
  }
}

/** Milliseconds for which the process in a slot need not be looked at. */
function look(slot: number): number {
  if (Atomics.load(states, slot) !== on) {
    watched[slot]?.clock?.close();
    watched[slot] = undefined;
    return Infinity;
  }
  const leftMs = endsMs[slot]! - usedMs(slot, endsMs[slot]!);
  // One thread cannot use more than passes. Near its end it is looked at all the time.
  if (Number.isNaN(leftMs)) return Infinity;
  if (leftMs > 2 * tickMsMax) return leftMs - 2 * tickMsMax;
  if (leftMs > 0) return Math.min(Math.max(leftMs, sleepMsMin), sleepMsMax);
  if (Atomics.compareExchange(states, slot, on, stopping) === on) {
    stop(pids[slot]!);
    Atomics.store(states, slot, stopped);
    Atomics.notify(states, slot);
  }
  return Infinity;
}

function usedMs(slot: number, endMs: number): number {
  const pid = pids[slot]!;
  let each = watched[slot];
  if (each?.pid !== pid) {
    each?.clock?.close();
    watched[slot] = each = { pid, clock: open(pid) };
  }
  const { clock } = each;
  if (clock === undefined) return Number.NaN;
  const writtenMs = clock.writtenMs();
  return endMs - writtenMs > 2 * tickMsMax ? writtenMs : clock.nowMs();
}

function open(pid: number): CpuClock | undefined {
  try {
    return new CpuClock(pid);
  } catch {
    return undefined;
  }
}

function stop(pid: number): void {
  try {
    process.kill(pid, "SIGSTOP");
  } catch {
    // it has ended
  }
}

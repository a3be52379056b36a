import { readlinkSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { workerData } from "node:worker_threads";
import { limiterState, type CpuLimiterMemory } from "./cpu-limiter.ts";
import { CpuClock, tickMsMax } from "../process/cpu-clock.ts";

/* Watches the CPU time of processes and stops each process (SIGSTOP) as soon as it has reached its limit. */

const { states, pids, endsMs, changes } = workerData as CpuLimiterMemory;
const { on, stopping, stopped } = limiterState;
const sleepMsMin = 0.1;
const sleepMsMax = 1;

interface Watched {
  pid: number;
  /** Undefined if the process ended before its clock was opened. */
  clock: CpuClock | undefined;
}
const watched: (Watched | undefined)[] = [];

comeFirst();
for (;;) {
  const change = Atomics.load(changes, 0);
  let sleepMs = Infinity;
  for (let slot = 0; slot < states.length; slot++) sleepMs = Math.min(sleepMs, check(slot));
  Atomics.wait(changes, 0, change, sleepMs);
}

/**
 * Raises the thread's priority, so that it need not wait for a processor until the watched processes yield.
 * Without permission the priority stays as it is.
 */
function comeFirst(): void {
  try {
    setPriority(
      Number(readlinkSync("/proc/thread-self").split("/").at(-1)),
      constants.priority.PRIORITY_HIGHEST,
    );
  } catch {
    // limits are a few milliseconds less exact
  }
}

/** Checks one slot. Returns the milliseconds until it must be checked again. */
function check(slot: number): number {
  if (Atomics.load(states, slot) !== on) {
    watched[slot]?.clock?.close();
    watched[slot] = undefined;
    return Infinity;
  }
  const leftMs = endsMs[slot]! - usedMs(slot, endsMs[slot]!);
  // A thread cannot use more CPU time than wall-clock time passes. Near its limit a process is checked
  // continuously.
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
    // the process has ended
  }
}

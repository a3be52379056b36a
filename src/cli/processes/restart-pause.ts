import { setTimeout as delay } from "node:timers/promises";

const pauseMs = { first: 100, max: 30_000 };
/**
 * While no process serves, one that was ready before is started again after this time at most. After so many attempts
 * in a row the time doubles, because each start makes the other processes read everything again.
 */
const absent = { ms: 1000, attempts: 20 };
const lookMs = 50;

/** The pause before the attempt with this number, from 0 on. */
export const pauseOf = (attempt: number): number =>
  Math.min(pauseMs.max, pauseMs.first * 2 ** Math.min(20, attempt));

/**
 * Waits before a process is started again that ended soon after its start, for the attempt with this number. Visitors do
 * not wait for the end of the pause: it is over when no other process serves or starts, if the process was ready before.
 */
export async function pauseBeforeRestart(
  attempt: number,
  { wasReady, isOtherThere }: { wasReady: boolean; isOtherThere: () => boolean },
): Promise<void> {
  const startMs = performance.now();
  const endMs = startMs + pauseOf(attempt);
  const absentMs = absent.ms * 2 ** Math.max(0, attempt - absent.attempts);
  while (performance.now() < endMs) {
    const isEnough = wasReady && performance.now() - startMs >= absentMs && !isOtherThere();
    if (isEnough) return;
    await delay(Math.min(lookMs, endMs - performance.now()));
  }
}

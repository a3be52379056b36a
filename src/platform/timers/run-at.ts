import { clock as processClock, type Clock } from "./clock.ts";

/** The system's clock may be set, and the machine may sleep: timers do not follow. */
const lookMs = 5000;

const waiting = new Set<() => void>();

/**
 * Calls `run` when the clock shows `dueMs`; also within five seconds after the clock was set, to a time beyond or back.
 * So `run` reads the time again. Returns a function that cancels the call.
 */
export function runAt(dueMs: number, run: () => void, clock: Clock = processClock): () => void {
  const setOn = clock.now();
  let cancelTimer = (): void => {};
  const wait = (): void => {
    cancelTimer();
    cancelTimer = clock.after(Math.min(dueMs - clock.now(), lookMs), () => {
      const now = clock.now();
      if (now >= setOn && now < dueMs) return wait();
      waiting.delete(wait);
      run();
    });
  };
  waiting.add(wait);
  wait();
  return () => {
    waiting.delete(wait);
    cancelTimer();
  };
}

/** For the test kit, which has moved the clock: what is due soon now runs on time. */
export function clockMoved(): void {
  for (const wait of [...waiting]) wait();
}

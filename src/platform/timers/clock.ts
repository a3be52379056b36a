/** The time for everything that is stored or becomes due. Sockets, CPU time and logs use the system's clock. */
export interface Clock {
  /** Milliseconds since 1970. */
  now: () => number;
  /** Calls `run` after `ms`, unless the returned function is called before. */
  after(ms: number, run: () => void): () => void;
  /** Calls `run` at the end of the current turn of the event loop. */
  soon(run: () => void): void;
}

const delayMsMax = 2 ** 31 - 1;
const systemNow = (): number => Date.now();
let readClock = systemNow;

/**
 * The clock of the process: the system's, unless the test kit has set another. Timers are real, so their
 * users read `now` again when a timer ends, and when the test kit has moved the clock.
 */
export const clock: Clock = {
  now: () => readClock(),
  after(ms, run) {
    const timer = setTimeout(run, Math.min(Math.max(ms, 0), delayMsMax));
    timer.unref();
    return () => clearTimeout(timer);
  },
  soon: (run) => {
    setImmediate(run);
  },
};

/** For the test kit: sets the source of the time. Without an argument, returns to the system's time. */
export function setTime(now: () => number = systemNow): void {
  readClock = now;
}

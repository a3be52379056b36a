/** Time as the engine sees it; the simulator has its own implementation. */
export interface Clock {
  now(): number;
  /** Calls `run` after `ms`, unless the returned function is called before. */
  after(ms: number, run: () => void): () => void;
  /** Calls `run` at the end of the current turn of the event loop. */
  soon(run: () => void): void;
}

const delayMsMax = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, Math.min(Math.max(ms, 0), delayMsMax));
    timer.unref();
    return () => clearTimeout(timer);
  },
  soon: (run) => {
    setImmediate(run);
  },
};

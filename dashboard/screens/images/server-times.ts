/** The times of the edge for an answer. */
export interface ServerTimes {
  /** In milliseconds. Undefined if nothing was made: the answer came from its cache, or is the original. */
  made: { queuedMs: number; workedMs: number } | undefined;
}

/** Browsers report an answer after its body, if at all. */
const reportMs = 1000;

export interface ObservedTimes {
  /** To be called after the answer. Resolves with undefined if the browser may not read its times. */
  end: () => Promise<ServerTimes | undefined>;
  cancel: () => void;
}

/** Observes the next answer from an address. */
export function observeTimes(address: string): ObservedTimes {
  const { href } = new URL(address);
  const startedAt = performance.now();
  const { promise, resolve } = Promise.withResolvers<ServerTimes | undefined>();
  const observer = new PerformanceObserver((list) => {
    const entry = (list.getEntriesByName(href) as PerformanceResourceTiming[]).find(
      (each) => each.startTime >= startedAt,
    );
    if (entry !== undefined) resolve(timesIn(entry));
  });
  observer.observe({ type: "resource" });
  return {
    async end() {
      const timer = setTimeout(() => resolve(undefined), reportMs);
      return promise.finally(() => clearTimeout(timer));
    },
    cancel: () => observer.disconnect(),
  };
}

function timesIn({ serverTiming, responseStart }: PerformanceResourceTiming): ServerTimes | undefined {
  if (responseStart === 0) return undefined; // of another origin that does not allow it
  const durationOf = (name: string): number | undefined =>
    serverTiming.find((each) => each.name === name)?.duration;
  const [queuedMs, workedMs] = [durationOf("queue"), durationOf("work")];
  return { made: queuedMs === undefined || workedMs === undefined ? undefined : { queuedMs, workedMs } };
}

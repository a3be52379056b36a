/*
 * Limits the concurrent requests of a run, as the public service does: each request takes 60 KiB or more of
 * the cell's memory until it is answered, so a script that sends a thousand at once would take the memory of
 * others.
 */
const { get, set, delete: remove } = Map.prototype;
const { push, shift } = Array.prototype;
const then = Promise.prototype.then as (this: unknown, ...args: (() => void)[]) => unknown;
const resolved = Promise.resolve.bind(Promise);
const { apply } = Reflect;
const [NativePromise, NativeError] = [Promise, Error];

interface Limiter {
  inFlight: number;
  waiting: (() => void)[];
}
/** The limiters of one kind of request. */
interface Limiters {
  byRun: Map<string, Limiter>;
  /** Limit for one run. */
  max: number;
  inFlight: number;
}

/** Requests to the internet and to bindings; further ones wait. */
const requestsMax = 6;
/** Calls of other scripts; further requests wait, and further method calls are refused. */
const callsMax = 32;
/**
 * Number of concurrent requests of all runs of the script in this isolate, from which on each run gets one at
 * a time. So all runs make progress, even if the script calls itself.
 */
const busyFrom = 256;
/** Maximum number of runs of which calls or work are noted; the oldest are dropped. */
const limitersMax = 1000;

const requests: Limiters = { byRun: new Map(), max: requestsMax, inFlight: 0 };
const calls: Limiters = { byRun: new Map(), max: callsMax, inFlight: 0 };

/** Sends a request to the outside or to a binding when the run has fewer than six of them. */
export const amongRequests = <T>(run: string, send: () => Promise<T>): Promise<T> =>
  among(requests, run, send);

/** Makes a call of another script when the run has fewer than 32 of them. */
export const amongCalls = <T>(run: string, send: () => Promise<T>): Promise<T> => among(calls, run, send);

const hasRoom = ({ max, inFlight }: Limiters, limiter: Limiter): boolean =>
  limiter.inFlight < max && (limiter.inFlight === 0 || inFlight < busyFrom);

function begin(limiters: Limiters, limiter: Limiter): void {
  limiter.inFlight++;
  limiters.inFlight++;
}

async function among<T>(limiters: Limiters, run: string, send: () => Promise<T>): Promise<T> {
  const limiter = limiterOf(limiters, run);
  if (hasRoom(limiters, limiter)) begin(limiters, limiter);
  else await new NativePromise<void>((resolve) => apply(push, limiter.waiting, [resolve]));
  try {
    return await send();
  } finally {
    leave(limiters, run, limiter);
  }
}

/** Counts a method call until its result has settled. Rejects if there are too many already. `failed` gets an error. */
export function countCall(
  run: string,
  call: () => unknown,
  failed: (error: unknown) => void = () => {},
): unknown {
  const limiter = limiterOf(calls, run);
  if (!hasRoom(calls, limiter))
    return NativePromise.reject(
      new NativeError(
        limiter.inFlight < callsMax
          ? "Worker has too many requests to handle."
          : `More than ${callsMax} calls of other scripts are in progress.`,
      ),
    );
  const result = call();
  begin(calls, limiter);
  const left = (): void => leave(calls, run, limiter);
  const leftFailed = (error: unknown): void => {
    left();
    failed(error);
  };
  (result as Promise<unknown>).then(left, leftFailed).catch(() => {});
  return result;
}

function limiterOf(limiters: Limiters, run: string): Limiter {
  const { byRun } = limiters;
  const known = apply(get, byRun, [run]) as Limiter | undefined;
  if (known !== undefined) return known;
  if (byRun.size >= limitersMax)
    for (const oldest of byRun.keys()) {
      forget(limiters, oldest);
      break;
    }
  const limiter: Limiter = { inFlight: 0, waiting: [] };
  apply(set, byRun, [run, limiter]);
  return limiter;
}

function leave(limiters: Limiters, run: string, limiter: Limiter): void {
  const isKnown = apply(get, limiters.byRun, [run]) === limiter;
  limiter.inFlight--;
  if (isKnown) limiters.inFlight--;
  while (hasRoom(limiters, limiter)) {
    const next = apply(shift, limiter.waiting, []) as (() => void) | undefined;
    if (next === undefined) break;
    limiter.inFlight++;
    if (isKnown) limiters.inFlight++;
    next();
  }
  if (limiter.inFlight === 0 && isKnown) apply(remove, limiters.byRun, [run]);
}

function forget(limiters: Limiters, run: string): void {
  const limiter = apply(get, limiters.byRun, [run]) as Limiter | undefined;
  if (limiter === undefined) return;
  limiters.inFlight -= limiter.inFlight;
  apply(remove, limiters.byRun, [run]);
}

/** The promises of a run that were passed to `ctx.waitUntil` and have not settled. */
interface Work {
  pending: number;
  /** Whether the visitor has left. */
  isLeft: boolean;
}
const works = new Map<string, Work>();

/** Notes work that was passed to `ctx.waitUntil`: its run goes on until then, even if the visitor leaves. */
export function noteWork(run: string | undefined, promise: unknown): void {
  if (run === undefined) return;
  let work = apply(get, works, [run]) as Work | undefined;
  if (work === undefined) {
    if (works.size >= limitersMax)
      for (const oldest of works.keys()) {
        apply(remove, works, [oldest]);
        break;
      }
    apply(set, works, [run, (work = { pending: 0, isLeft: false })]);
  }
  work.pending++;
  const settled = (): void => {
    if (--work.pending > 0) return;
    if (apply(get, works, [run]) === work) apply(remove, works, [run]);
    if (work.isLeft) endRun(run);
  };
  apply(then, resolved(promise), [settled, settled]);
}

/** Drops the counts of runs whose visitors have left: workerd ends their requests, and continues no code of them. */
export function endRuns(runs: readonly string[]): void {
  for (let i = 0; i < runs.length; i++) {
    const work = apply(get, works, [runs[i]]) as Work | undefined;
    if (work === undefined) endRun(runs[i]!);
    else work.isLeft = true;
  }
}

function endRun(run: string): void {
  forget(requests, run);
  forget(calls, run);
  for (let i = 0; i < ends.length; i++) ends[i]!(run);
}

const ends: ((run: string) => void)[] = [];

/** Adds a function that drops what else is kept of a run until its end. */
export const whenLeft = (end: (run: string) => void): void => {
  ends[ends.length] = end;
};

import type { Path, Race } from "../edge/route.ts";
import type { OriginPath } from "./origin-path.ts";
import type { PathGroup } from "./path-group.ts";

/** What is needed to send one request over one path or, where the first is slow or fails, over more. */
export interface Attempts {
  group: PathGroup;
  /** Where a connection on the path is to be had. */
  connect(path: OriginPath): Promise<Path>;
  send(path: Path, race: Race): Promise<void>;
  /** Whether it means the same when it is sent twice: only then is it hedged, and repeated after a failure. */
  isRepeatable: boolean;
  /** Whether a failed attempt cannot have reached the origin, and has left the request whole. */
  isUnsent(error: unknown): boolean;
  /** Told the time to first byte, as the visitor had it. */
  answered(ttfbMs: number): void;
  hedged(): void;
  /** Told that a path will not be used for a while, and the failure after which. */
  setAside(path: OriginPath, failure: unknown): void;
}

class Superseded extends Error {}

/** Sends on `first`, hedges it when it is slower than usual, and goes on to other paths when it fails. */
export async function sendOver(first: OriginPath, mayHedge: boolean, attempts: Attempts): Promise<void> {
  const { group, isRepeatable } = attempts;
  const startMs = performance.now();
  const tried = new Set<OriginPath>();
  const running = new Map<OriginPath, (why: Error) => void>();
  let winner: OriginPath | undefined;

  const run = async (path: OriginPath): Promise<void> => {
    tried.add(path);
    const request = path.start(performance.now());
    running.set(path, () => {});
    const race: Race = {
      started(abort) {
        if (winner === undefined) running.set(path, abort);
        else abort(new Superseded());
      },
      claim(status) {
        if (winner !== undefined) return new Superseded();
        winner = path;
        const nowMs = performance.now();
        if (isRepeatable) path.sample(request, nowMs);
        if (status >= 500) path.faulty();
        else path.succeeded();
        path.end(request);
        if (group.review(path, nowMs)) attempts.setAside(path, new Error(`status ${status}`));
        attempts.answered(nowMs - startMs);
        for (const [other, abort] of running) if (other !== path) abort(new Superseded());
        return undefined;
      },
    };
    try {
      await attempts.send(await attempts.connect(path), race);
    } catch (error) {
      const nowMs = performance.now();
      if (winner === undefined) path.failed(request, nowMs);
      else path.sample(request, nowMs); // it would have taken at least as long
      if (group.review(path, nowMs)) attempts.setAside(path, error);
      throw error;
    } finally {
      path.end(request);
      running.delete(path);
    }
  };

  /** Runs on a path and, until somebody has answered, on the next after it. */
  const persist = async (path: OriginPath): Promise<void> => {
    for (let next: OriginPath | undefined = path; next !== undefined;) {
      try {
        await run(next);
        return;
      } catch (error) {
        if (winner !== undefined) return;
        const mayGoOn = running.size === 0 && (isRepeatable || attempts.isUnsent(error));
        next = mayGoOn ? group.next(tried, performance.now()) : undefined;
        if (next === undefined) throw error;
      }
    }
  };

  const delayMs = mayHedge && isRepeatable && group.paths.length > 1 ? group.hedgeDelayMs(first) : undefined;
  if (delayMs === undefined) return persist(first);
  let hedge: { path: OriginPath; done: Promise<void> } | undefined;
  const timer = setTimeout(() => {
    const path = winner === undefined ? group.next(tried, performance.now()) : undefined;
    if (path === undefined || !group.takeHedge()) return;
    attempts.hedged();
    hedge = { path, done: persist(path) };
    hedge.done.catch(() => {}); // where it matters it is awaited below
  }, delayMs);
  try {
    await persist(first);
  } catch (error) {
    if (hedge === undefined) throw error;
  } finally {
    clearTimeout(timer);
  }
  // Where the first path did not answer, the request has ended only when the second has.
  if (hedge !== undefined && winner !== first) await hedge.done;
}

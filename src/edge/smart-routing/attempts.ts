import type { Path, Race } from "../configuration/route.ts";
import type { OriginPath } from "./origin-path.ts";
import type { PathGroup } from "./path-group.ts";

/** Functions for sending one request over one path or, when it is slow or fails, over several. */
export interface Attempts {
  group: PathGroup;
  /** Connects on a path. */
  connect(path: OriginPath): Promise<Path>;
  send(path: Path, race: Race): Promise<void>;
  /** Whether the request may be sent twice. Only then is it hedged, or repeated after a failure. */
  isRepeatable: boolean;
  /** Whether a failed attempt cannot have reached the origin and left the request complete. */
  isUnsent(error: unknown): boolean;
  /** Called with the time to first byte of the visitor's response. */
  answered(ttfbMs: number): void;
  hedged(): void;
  /** Called when a path is excluded for a while, with the failure that caused it. */
  setAside(path: OriginPath, failure: unknown): void;
}

class Superseded extends Error {}

/** Sends on `first`, hedges when it is slower than usual, and tries other paths when it fails. */
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
      else path.sample(request, nowMs); // it would have taken at least this long
      if (group.review(path, nowMs)) attempts.setAside(path, error);
      throw error;
    } finally {
      path.end(request);
      running.delete(path);
    }
  };

  /** Sends on a path and, while there is no response, on the following ones. */
  const persist = async (path: OriginPath): Promise<void> => {
    for (let next: OriginPath | undefined = path; next !== undefined;) {
      try {
        await run(next);
        return;
      } catch (error) {
        if (winner !== undefined && winner !== next) return;
        // The winner fails when its response cannot be sent to the visitor, who then gets an error.
        const mayGoOn: boolean =
          winner === undefined && running.size === 0 && (isRepeatable || attempts.isUnsent(error));
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
    hedge.done.catch(() => {}); // awaited below when it matters
  }, delayMs);
  try {
    await persist(first);
  } catch (error) {
    if (hedge === undefined) throw error;
  } finally {
    clearTimeout(timer);
  }
  // When the first path did not respond, the request ends with the second one.
  if (hedge !== undefined && winner !== first) await hedge.done;
}

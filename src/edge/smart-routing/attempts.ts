import type { Path, Race } from "../configuration/route.ts";
import type { OriginPath } from "./origin-path.ts";
import type { PathGroup } from "./path-group.ts";

/** Functions for sending one request over one path or, when it is slow or fails, over several. */
export interface PathAttempts {
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
export const sendOver = async (first: OriginPath, mayHedge: boolean, attempts: PathAttempts): Promise<void> =>
  new Sending(attempts).send(first, mayHedge);

/** One request, which runs on one path or on several at a time. The first response wins. */
class Sending {
  readonly #attempts: PathAttempts;
  readonly #startMs = performance.now();
  readonly #tried = new Set<OriginPath>();
  readonly #running = new Map<OriginPath, (why: Error) => void>();
  #winner: OriginPath | undefined;

  constructor(attempts: PathAttempts) {
    this.#attempts = attempts;
  }

  async send(first: OriginPath, mayHedge: boolean): Promise<void> {
    const { group, isRepeatable } = this.#attempts;
    const delayMs =
      mayHedge && isRepeatable && group.paths.length > 1 ? group.hedgeDelayMs(first) : undefined;
    if (delayMs === undefined) return this.#persist(first);
    let hedge: { path: OriginPath; done: Promise<void> } | undefined;
    const timer = setTimeout(() => {
      const path = this.#winner === undefined ? group.next(this.#tried, performance.now()) : undefined;
      if (path === undefined || !group.takeHedge()) return;
      this.#attempts.hedged();
      hedge = { path, done: this.#persist(path) };
      hedge.done.catch(() => {}); // awaited below when it matters
    }, delayMs);
    try {
      await this.#persist(first);
    } catch (error) {
      if (hedge === undefined) throw error;
    } finally {
      clearTimeout(timer);
    }
    // When the first path did not respond, the request ends with the second one.
    if (hedge !== undefined && this.#winner !== first) await hedge.done;
  }

  /** Sends on a path and, while there is no response, on the following ones. */
  async #persist(path: OriginPath): Promise<void> {
    const attempts = this.#attempts;
    const { group, isRepeatable } = attempts;
    for (let next: OriginPath | undefined = path; next !== undefined;) {
      try {
        await this.#run(next);
        return;
      } catch (error) {
        if (this.#winner !== undefined && this.#winner !== next) return;
        // The winner fails when its response cannot be sent to the visitor, who then gets an error.
        const mayGoOn: boolean =
          this.#winner === undefined &&
          this.#running.size === 0 &&
          (isRepeatable || attempts.isUnsent(error));
        next = mayGoOn ? group.next(this.#tried, performance.now()) : undefined;
        if (next === undefined) throw error;
      }
    }
  }

  async #run(path: OriginPath): Promise<void> {
    const attempts = this.#attempts;
    this.#tried.add(path);
    const request = path.start(performance.now());
    this.#running.set(path, () => {});
    const race: Race = {
      started: (abort) => {
        if (this.#winner === undefined) this.#running.set(path, abort);
        else abort(new Superseded());
      },
      claim: (status) => this.#claim(path, request, status),
    };
    try {
      await attempts.send(await attempts.connect(path), race);
    } catch (error) {
      const nowMs = performance.now();
      if (this.#winner === undefined) path.failed(request, nowMs);
      else path.sample(request, nowMs); // it would have taken at least this long
      if (attempts.group.review(path, nowMs)) attempts.setAside(path, error);
      throw error;
    } finally {
      path.end(request);
      this.#running.delete(path);
    }
  }

  /** Makes the path with the first response the winner. Later paths get the reason to abort. */
  #claim(path: OriginPath, request: ReturnType<OriginPath["start"]>, status: number): Error | undefined {
    if (this.#winner !== undefined) return new Superseded();
    this.#winner = path;
    const attempts = this.#attempts;
    const nowMs = performance.now();
    if (attempts.isRepeatable) path.sample(request, nowMs);
    if (status >= 500) path.faulty();
    else path.succeeded();
    path.end(request);
    if (attempts.group.review(path, nowMs)) attempts.setAside(path, new Error(`status ${status}`));
    attempts.answered(nowMs - this.#startMs);
    for (const [other, abort] of this.#running) if (other !== path) abort(new Superseded());
    return undefined;
  }
}

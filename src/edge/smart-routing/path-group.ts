import type { OriginPath } from "./origin-path.ts";

/** Share of requests that stay on the direct path as a control group. */
const controlShare = 0.02;
/** Share of requests that explore the path with the fewest samples. */
const explorationShare = 0.01;
const staleMs = 1000;
/** A new path must be better by this ratio and by this time, because it has no warm connections yet. */
const advantageRatio = 0.9;
const advantageMs = 5;
/** Hedged requests as a share of all, and their maximum burst. */
const hedgeShare = 0.05;
const hedgesAtOnce = 10;
const ejectedShareMax = 0.5;
const comparedPathsMin = 5;
const successShareFine = 0.9;
const outlierDeviations = 1.9;

export interface Choice {
  path: OriginPath;
  kind: "best" | "control" | "exploration";
}

/** The paths to one origin of one zone, and the current one. */
export class PathGroup {
  readonly paths: readonly OriginPath[];
  readonly #random: () => number;
  #current: OriginPath | undefined;
  #hedges = 0;

  constructor(paths: readonly OriginPath[], random: () => number = Math.random) {
    this.paths = paths;
    this.#random = random;
  }

  /** `direct` is the address that is used without smart routing. */
  choose(direct: string, isRepeatable: boolean, nowMs: number): Choice {
    this.#hedges = Math.min(this.#hedges + hedgeShare, hedgesAtOnce);
    const usable = this.#usable(nowMs);
    const draw = this.#random();
    if (draw < controlShare) return { path: this.#direct(direct), kind: "control" };
    if (isRepeatable && usable.length > 1) {
      const isUnknown = (path: OriginPath): boolean => path.latency.isCold && path.inFlight === 0;
      const cold = usable.find((path) => path !== this.#current && isUnknown(path));
      if (cold !== undefined) return { path: cold, kind: "exploration" };
      if (draw < controlShare + explorationShare) {
        const [stalest] = usable.toSorted((a, b) => a.latency.atMs - b.latency.atMs);
        if (stalest !== this.#current && nowMs - stalest!.latency.atMs > staleMs)
          return { path: stalest!, kind: "exploration" };
      }
    }
    return { path: this.#best(usable, direct, nowMs), kind: "best" };
  }

  /** The next path for a request that failed on all paths before; undefined when there is none. */
  next(tried: ReadonlySet<OriginPath>, nowMs: number): OriginPath | undefined {
    const rest = (paths: readonly OriginPath[]): OriginPath[] => paths.filter((path) => !tried.has(path));
    const left = rest(this.#usable(nowMs));
    const candidates = left.length > 0 ? left : rest(this.paths);
    return candidates.toSorted((a, b) => (a.score(nowMs) ?? 0) - (b.score(nowMs) ?? 0))[0];
  }

  /** Wait for a first byte before a second path is tried, in milliseconds. Undefined without data. */
  hedgeDelayMs(path: OriginPath): number | undefined {
    const known = path.latency.isCold ? this.#current : path;
    const ms = known?.latency.ms;
    return ms === undefined ? undefined : Math.max(known!.latency.p95() ?? ms * 2, ms * 1.6, advantageMs);
  }

  /** Takes one hedge from the budget, if one is left. */
  takeHedge(): boolean {
    if (this.#hedges < 1) return false;
    this.#hedges -= 1;
    return true;
  }

  /**
   * Excludes a failing path, unless half of the paths are excluded already. True when it was excluded just
   * now.
   */
  review(path: OriginPath, nowMs: number): boolean {
    if (path.isEjected(nowMs) || !(path.hasFailedInARow || this.#isOutlier(path))) return false;
    const ejected = this.paths.filter((each) => each.isEjected(nowMs)).length;
    if ((ejected + 1) / this.paths.length > ejectedShareMax) return false;
    path.eject(nowMs);
    this.follow(nowMs); // requests that chose before the exclusion may be the last for a while
    return true;
  }

  /** Whether a path fails clearly more often than the others. Needs several others for comparison. */
  #isOutlier(path: OriginPath): boolean {
    const own = path.successShare;
    if (own === undefined || own >= successShareFine) return false;
    const shares = this.paths.flatMap(({ successShare }) => successShare ?? []);
    if (shares.length < comparedPathsMin) return false;
    const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
    const variance = shares.reduce((sum, share) => sum + (share - mean) ** 2, 0) / shares.length;
    return own < mean - outlierDeviations * Math.sqrt(variance);
  }

  /** Chooses the current path again, after an exclusion or after observations of other processes. */
  follow(nowMs: number): void {
    this.#best(this.#usable(nowMs), this.paths[0]!.address, nowMs);
  }

  get current(): OriginPath | undefined {
    return this.#current;
  }

  #usable(nowMs: number): readonly OriginPath[] {
    const usable = this.paths.filter((path) => !path.isEjected(nowMs));
    return usable.length === 0 ? this.paths : usable;
  }

  #direct(address: string): OriginPath {
    return this.paths.find((path) => path.relay === undefined && path.address === address) ?? this.paths[0]!;
  }

  /** The path of requests while no usable path has data: the direct one, unless it is excluded. */
  #unmeasured(usable: readonly OriginPath[], direct: string): OriginPath {
    const path = this.#direct(direct);
    return usable.includes(path) ? path : usable[0]!;
  }

  #best(usable: readonly OriginPath[], direct: string, nowMs: number): OriginPath {
    let best: OriginPath | undefined;
    let bestMs = Infinity;
    for (const path of usable) {
      const ms = path.score(nowMs);
      if (ms !== undefined && ms < bestMs) [best, bestMs] = [path, ms];
    }
    const before = this.#current;
    const current = before === undefined || !usable.includes(before) ? undefined : before;
    const currentMs = current?.score(nowMs);
    if (best === undefined) return (this.#current = current ?? this.#unmeasured(usable, direct));
    if (current === undefined || currentMs === undefined) this.#current = best;
    else if (bestMs < currentMs * advantageRatio && bestMs < currentMs - advantageMs) this.#current = best;
    return this.#current!;
  }
}

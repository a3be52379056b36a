import { Histogram } from "./histogram.ts";

export const seriesNames = ["smart", "direct"] as const;
export type SeriesName = (typeof seriesNames)[number];

const hourMs = 3_600_000;
export const hoursKept = 48;

/** Times to first byte with smart routing, and of the control group on the direct path. */
export class Tally {
  readonly smart = new Histogram();
  readonly direct = new Histogram();
  hedges = 0;
  failures = 0;

  get isEmpty(): boolean {
    return seriesNames.every((name) => this[name].count === 0) && this.hedges === 0 && this.failures === 0;
  }

  merge(other: Tally): this {
    for (const name of seriesNames) this[name].merge(other[name]);
    this.hedges += other.hedges;
    this.failures += other.failures;
    return this;
  }
}

/** Results of smart routing for a zone on this node. */
export class ZoneAnalytics {
  /** Since the start of the node. */
  lifetime = new Tally();
  #hours: { hour: number; tally: Tally }[] = [];

  add(series: SeriesName, ttfbMs: number): void {
    for (const tally of this.#both()) tally[series].add(ttfbMs);
  }

  /** Adds the results of another process. */
  merge(other: Tally): void {
    for (const tally of this.#both()) tally.merge(other);
  }

  /** The results since the last call, which this process forgets. */
  take(): Tally {
    const taken = this.lifetime;
    this.lifetime = new Tally();
    this.#hours = [];
    return taken;
  }

  hedged(): void {
    for (const tally of this.#both()) tally.hedges += 1;
  }

  failed(): void {
    for (const tally of this.#both()) tally.failures += 1;
  }

  /** The last 48 hours. */
  recent(nowMs = Date.now()): Tally {
    const first = Math.floor(nowMs / hourMs) - hoursKept;
    const recent = this.#hours.filter(({ hour }) => hour > first);
    return recent.reduce((total, { tally }) => total.merge(tally), new Tally());
  }

  #both(): [Tally, Tally] {
    const hour = Math.floor(Date.now() / hourMs);
    let last = this.#hours.at(-1);
    if (last?.hour !== hour) {
      last = { hour, tally: new Tally() };
      this.#hours = [...this.#hours.filter((each) => each.hour > hour - hoursKept), last];
    }
    return [last.tally, this.lifetime];
  }
}

/** State of a path to a zone's origin. */
export interface PathReport {
  path: string;
  /** The number of its origin in the report: paths of one origin are alternatives. */
  origin: number;
  address: string;
  port: number;
  /** The name of the relay; undefined for the direct path. */
  relay: string | undefined;
  isCurrent: boolean;
  isEjected: boolean;
  /** Time until it may return; 0 for a path that is not excluded. */
  ejectedForMs: number;
  ttfbMs: number | undefined;
  /** Quantiles of the last 64 requests: 0.5, 0.9 and 0.99. */
  quantilesMs: readonly (number | undefined)[];
  inFlight: number;
  requests: number;
  failures: number;
}

/** The analytics of all zones on this node. */
export class Analytics {
  /** Set by the router. */
  pathsOf: (zoneId: string) => PathReport[] = () => [];
  readonly #zones = new Map<string, ZoneAnalytics>();

  zone(id: string): ZoneAnalytics {
    let zone = this.#zones.get(id);
    if (zone === undefined) this.#zones.set(id, (zone = new ZoneAnalytics()));
    return zone;
  }

  remove(id: string): void {
    this.#zones.delete(id);
  }

  /** The results of each zone that has some since the last call, which this process forgets. */
  take(): [zoneId: string, results: Tally][] {
    return [...this.#zones].flatMap(([id, zone]) => (zone.lifetime.isEmpty ? [] : [[id, zone.take()]]));
  }

  entries(): IterableIterator<[string, ZoneAnalytics]> {
    return this.#zones.entries();
  }
}

import { duration } from "../../../core/format.ts";

export interface Measured {
  requests: number;
  p50_ms: number | null;
  p95_ms: number | null;
  p99_ms: number | null;
  counts: number[];
}

/** A way to an origin: directly, or through a relay. */
export interface OriginPath {
  path: string;
  origin: number;
  address: string;
  port: number;
  relay: string | null;
  current: boolean;
  ejected: boolean;
  ejected_until: string | null;
  ttfb_ms: number | null;
  p50_ms: number | null;
  p90_ms: number | null;
  p99_ms: number | null;
  in_flight: number;
  requests: number;
  failures: number;
}

/** The effect of smart routing as the API shows it; the fields that the console uses. */
export interface Analytics {
  ttfb_bounds_ms: number[];
  smart: Measured;
  direct: Measured;
  p50_ratio: number | null;
  hedged_requests: number;
  failed_requests: number;
  paths: OriginPath[];
}

export const ms = (value: number | null): string => (value === null ? "–" : duration(value));

/** The part of the requests to the same origin that took a path. */
export const shareOf = (path: OriginPath, paths: readonly OriginPath[]): number => {
  const total = paths.reduce((sum, { origin, requests }) => sum + (origin === path.origin ? requests : 0), 0);
  return total === 0 ? 0 : path.requests / total;
};

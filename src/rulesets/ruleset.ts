import { ApiError } from "../api/errors.ts";

export interface Rule {
  id: string;
  version: string;
  ref: string;
  action: string;
  expression: string;
  description: string;
  enabled: boolean;
  actionParameters: Record<string, unknown>;
  lastUpdated: number;
}

export interface Ruleset {
  id: string;
  zoneId: string;
  kind: "zone";
  phase: Phase;
  name: string;
  description: string;
  version: number;
  rules: Rule[];
  lastUpdated: number;
}

/** The phases that this platform executes. A ruleset for any other would be accepted and do nothing, so it is refused. */
export const phases = ["http_request_origin", "http_request_snippets"] as const;
export type Phase = (typeof phases)[number];

/** What an origin rule changes; hosts are lower-case. */
export interface OriginOverride {
  hostHeader?: string;
  host?: string;
  port?: number;
  sni?: string;
}

export const rulesetErrors = {
  noEntrypoint: (phase: string) =>
    new ApiError(404, 10003, `could not find entrypoint ruleset in the "${phase}" phase`),
  notFound: (id: string) => new ApiError(404, 10002, `could not find ruleset "${id}"`),
  ruleNotFound: (id: string) => new ApiError(404, 10007, `could not find rule "${id}"`),
  exists: (phase: string) =>
    new ApiError(
      409,
      20018,
      `the zone already has an entrypoint ruleset in the "${phase}" phase. Change that one`,
    ),
};

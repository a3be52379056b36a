/** A rule of a ruleset, with the ids that the API gave it. */
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

/** The rules of one phase of a zone, in the order in which they apply. */
export interface Ruleset {
  id: string;
  zoneId: string;
  kind: "zone";
  phase: RulesetPhase;
  name: string;
  description: string;
  version: number;
  rules: Rule[];
  lastUpdated: number;
}

/**
 * The phases that this platform executes. Rulesets for other phases are rejected, because they would have no
 * effect.
 */
export const phases = ["http_request_origin", "http_request_snippets"] as const;
export type RulesetPhase = (typeof phases)[number];

/** The changes that an origin rule makes. Hosts are lower-case. */
export interface OriginOverride {
  hostHeader?: string;
  host?: string;
  port?: number;
  sni?: string;
}

import { tagOf } from "../api/if-match.ts";

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

/** The tag of the state of a list of rules: it differs if a rule, or their order, does. */
export const rulesTag = (rules: readonly Pick<Rule, "id" | "version">[]): string =>
  tagOf(rules.map(({ id, version }) => `${id} ${version}`));

/** The tag of the state of a ruleset. Each change raises its version, and another ruleset has another id. */
export const rulesetTag = ({ id, version }: Pick<Ruleset, "id" | "version">): string => `${id}.${version}`;

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

import type { Immutable } from "../../platform/storage/columns.ts";

/** Rulesets; `rules` is JSON. */
export interface RulesetsTable {
  id: Immutable<string>;
  owner_kind: Immutable<"zone" | "account">;
  owner_id: Immutable<string>;
  kind: Immutable<string>;
  phase: Immutable<string>;
  name: string;
  description: string;
  version: number;
  rules: string;
  last_updated: number;
}

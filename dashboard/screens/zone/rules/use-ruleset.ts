import { useGet, type Query } from "../../../core/cache.ts";
import { entrypointOf, rulesetsOf, type Ruleset } from "./rule.ts";

/** The ruleset of a phase; null if the zone has none yet. It is asked for only if the list of rulesets has it. */
export function useRuleset(
  zoneId: string,
  phase: string,
  options: { everyMs?: number },
): Query<Ruleset | null> {
  const list = useGet<{ phase: string }[]>(rulesetsOf(zoneId), options);
  const isThere = list.data?.some((each) => each.phase === phase);
  const ruleset = useGet<Ruleset>(isThere === true ? entrypointOf(zoneId, phase) : undefined, options);
  if (isThere === false) return { ...list, data: null };
  if (ruleset.failure?.status === 404) return { ...ruleset, failure: undefined, data: null };
  return isThere === true ? ruleset : { ...list, data: undefined };
}

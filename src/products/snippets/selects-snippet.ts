import type { EdgeRequest } from "../../edge/request/handlers.ts";
import type { Snippets } from "./snippets.ts";

/** Whether a rule of the zone selects a snippet for a request. */
export const selectsSnippet =
  (snippets: Snippets) =>
  (edgeRequest: EdgeRequest): boolean | Promise<boolean> => {
    if (edgeRequest.zone === undefined) return false;
    const zoneId = edgeRequest.zone.id;
    const rules = snippets.snippetRules(zoneId);
    if (rules.length === 0) return false;
    const isSelected = (): boolean => rules.some((rule) => rule.matches(edgeRequest.describe));
    return snippets.readsBody(zoneId) ? edgeRequest.readBody().then(isSelected) : isSelected();
  };

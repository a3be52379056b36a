import { defineErrors } from "../../platform/domain-error.ts";

export const rulesetErrors = defineErrors("rulesets", {
  noEntrypoint: (phase: string) => `could not find entrypoint ruleset in the "${phase}" phase`,
  notFound: (id: string) => `could not find ruleset "${id}"`,
  ruleNotFound: (id: string) => `could not find rule "${id}"`,
  exists: (phase: string) =>
    `the zone already has an entrypoint ruleset in the "${phase}" phase. Change that one`,
});

import { declare, table } from "../../declaration.ts";
import type { RulesetsTable } from "./tables.ts";

/** Rulesets. */
export const declaration = declare({
  tables: {
    rulesets: table<RulesetsTable>(),
  },
  changes: ["ruleset"],
});

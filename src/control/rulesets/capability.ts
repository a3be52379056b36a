import { capability } from "../../capability.ts";
import { storage } from "../../platform/capability.ts";
import { rulesetOperations } from "./api.ts";
import { Rulesets } from "./rulesets.ts";
import { declaration } from "./declaration.ts";

export const rulesets = capability({
  name: "rulesets",
  declares: declaration,
  needs: [storage],
  create: (needed) => ({ rulesets: new Rulesets(needed.storage) }),
  operations: rulesetOperations,
  idParameters: ["ruleset_id"],
});

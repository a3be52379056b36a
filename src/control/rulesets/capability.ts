import { capability } from "../../capability.ts";
import { storage } from "../../platform/capability.ts";
import { Rulesets } from "./rulesets.ts";
import { declaration } from "./declaration.ts";
import { rulesetErrors } from "./errors.ts";
import { rulesetErrorCodes } from "./api-errors.ts";

export const rulesets = capability({
  name: "rulesets",
  processes: "all",
  declares: declaration,
  needs: [storage],
  create: (needed) => ({ rulesets: new Rulesets(needed.storage) }),
  operations: async () => (await import("./api.ts")).rulesetOperations,
  errors: [{ title: "Rulesets", errors: rulesetErrors, codes: rulesetErrorCodes }],
  idParameters: ["ruleset_id"],
});

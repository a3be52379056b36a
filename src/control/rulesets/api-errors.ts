import type { ErrorCodes } from "../api/errors.ts";
import type { rulesetErrors } from "./errors.ts";

export const rulesetErrorCodes: ErrorCodes<typeof rulesetErrors> = {
  "rulesets.noEntrypoint": [404, 10003],
  "rulesets.notFound": [404, 10002],
  "rulesets.ruleNotFound": [404, 10007],
  "rulesets.exists": [409, 20018],
};

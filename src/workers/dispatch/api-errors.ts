import type { ErrorCodes } from "../../control/api/errors.ts";
import type { namespaceErrors } from "../scripts/namespaces/errors.ts";

export const namespaceErrorCodes: ErrorCodes<typeof namespaceErrors> = {
  "dispatch.notFound": [404, 100119],
  "dispatch.exists": [409, 100120],
  "dispatch.name": [400, 100121],
};

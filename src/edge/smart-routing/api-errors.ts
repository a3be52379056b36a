import type { ErrorCodes } from "../../control/api/errors.ts";
import type { smartRoutingErrors } from "./errors.ts";

export const smartRoutingErrorCodes: ErrorCodes<typeof smartRoutingErrors> = {
  "smartRouting.notEditable": [403, 1015],
};

import type { ErrorCodes } from "../api/errors.ts";
import type { tokenErrors } from "./errors.ts";

export const tokenErrorCodes: ErrorCodes<typeof tokenErrors> = {
  "tokens.notFound": [404, 1003],
  "tokens.callerRevoked": [401, 1000],
  "tokens.beyondCaller": [403, 1052],
};

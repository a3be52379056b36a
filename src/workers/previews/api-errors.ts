import type { ErrorCodes } from "../../control/api/errors.ts";
import { scriptErrorCodes } from "../scripts/api-errors.ts";
import type { previewErrors } from "./errors.ts";

export const previewErrorCodes: ErrorCodes<typeof previewErrors> = {
  "previews.accountBusy": [429, 10021],
  "previews.busy": [429, 10021],
  "previews.ended": [503, 10021],
  "previews.unavailable": [503, 10021],
  "previews.header": [400, 10021],
  "previews.object": [400, 10061],
};

/** Code is refused as in an upload. */
export const allErrorCodes: ErrorCodes = { ...scriptErrorCodes, ...previewErrorCodes };

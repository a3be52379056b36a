import type { ErrorCodes } from "../../control/api/errors.ts";
import type { tailErrors } from "./errors.ts";

export const tailErrorCodes: ErrorCodes<typeof tailErrors> = {
  "tails.notFound": [404, 10110],
  "tails.tooMany": [429, 10111],
};

import type { ErrorCodes } from "../../control/api/errors.ts";
import type { dnssecErrors } from "./errors.ts";

export const dnssecErrorCodes: ErrorCodes<typeof dnssecErrors> = {
  "dnssec.stillSigned": [409, 1250],
  "dnssec.notFull": [400, 1251],
};

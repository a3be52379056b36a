import type { ErrorCodes } from "../../control/api/errors.ts";
import type { kvErrors } from "./errors.ts";

export const kvErrorCodes: ErrorCodes<typeof kvErrors> = {
  "kv.namespaceNotFound": [404, 10013],
  "kv.titleExists": [400, 10014],
  "kv.keyNotFound": [404, 10009],
  "kv.key": [400, 10033],
  "kv.tooLarge": [413, 10047],
  "kv.tooMuch": [413, 10049],
  "kv.notJson": [400, 10050],
  "kv.base64": [400, 10051],
  "kv.metadata": [400, 10048],
  "kv.badMetadata": [400, 10052],
  "kv.expiration": [400, 10020],
  "kv.cursor": [400, 10044],
};

import type { ErrorCodes } from "../../../control/api/errors.ts";
import type { assetErrors } from "../errors.ts";

export const assetErrorCodes: ErrorCodes<typeof assetErrors> = {
  "assets.badToken": [401, 1000],
  "assets.manifest": [400, 9207],
  "assets.notRequested": [400, 10303],
  "assets.size": [400, 10304],
  "assets.encoding": [400, 9207],
  "assets.base64": [400, 10305],
  "assets.tooLarge": [413, 10306],
  "assets.none": [404, 10308],
  "assets.completion": [400, 10307],
};

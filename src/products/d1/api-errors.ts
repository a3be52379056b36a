import type { ErrorCodes } from "../../control/api/errors.ts";
import type { d1Errors } from "./errors.ts";

export const d1ErrorCodes: ErrorCodes<typeof d1Errors> = {
  "d1.notFound": [404, 7404],
  "d1.exists": [400, 7502],
  "d1.tooMany": [400, 7406],
  "d1.sql": [400, 7500],
  "d1.failed": [500, 7500],
  "d1.unreachable": [503, 7500],
  "d1.parameters": [400, 7400],
  "d1.timeTravel": [400, 7400],
  "d1.moment": [400, 7400],
  "d1.timestamp": [400, 7400],
  "d1.unrestorable": [400, 7400],
  "d1.noFile": [404, 7404],
  "d1.etag": [400, 7400],
  "d1.fileTooLarge": [413, 7400],
  "d1.noJob": [404, 7404],
  "d1.busy": [409, 7400],
  "d1.noTransfer": [401, 1000],
};

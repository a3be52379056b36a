import type { ErrorCodes } from "../../control/api/errors.ts";
import type { logpushErrors } from "./errors.ts";

export const logpushErrorCodes: ErrorCodes<typeof logpushErrors> = {
  "logpush.noJob": [404, 7003],
  "logpush.tooMany": [409, 1005],
  "logpush.noDataSetAt": [404, 7003],
  "logpush.noDataSet": [400, 1002],
  "logpush.unsupported": [400, 1002],
  "logpush.invalid": [400, 1002],
  "logpush.destination": [400, 1002],
  "logpush.unreachable": [400, 1002],
  "logpush.challenge": [400, 1002],
};

import type { ErrorCodes } from "../../control/api/errors.ts";
import type { scheduleErrors } from "./errors.ts";

export const scheduleErrorCodes: ErrorCodes<typeof scheduleErrors> = {
  "schedules.cron": [400, 10100],
  "schedules.twice": [400, 10101],
};

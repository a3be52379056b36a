import type { ErrorCodes } from "../../control/api/errors.ts";
import type { queueErrors } from "./errors.ts";

export const queueErrorCodes: ErrorCodes<typeof queueErrors> = {
  "queues.notFound": [404, 11000],
  "queues.exists": [409, 11009],
  "queues.tooMany": [403, 11010],
  "queues.consumerNotFound": [404, 11001],
  "queues.consumerExists": [409, 11004],
  "queues.noScript": [404, 10007],
  "queues.deadLetterQueue": [400, 11003],
  "queues.ownDeadLetters": [400, 11017],
  "queues.notPulled": [405, 11005],
  "queues.noEvents": [400, 11015],
  "queues.noSubscription": [404, 11016],
  "queues.message": [400, 11006],
};

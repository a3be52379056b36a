import type { ErrorCodes } from "../../control/api/errors.ts";
import type { transferErrors } from "./errors.ts";

export const transferErrorCodes: ErrorCodes<typeof transferErrors> = {
  "transfers.notFound": [404, 1260],
  "transfers.none": [404, 1261],
  "transfers.disabled": [409, 1267],
  "transfers.exists": [409, 1262],
  "transfers.nameTaken": [409, 1263],
  "transfers.inUse": [409, 1264],
  "transfers.unknownReference": [400, 1265],
  "transfers.notServed": [400, 1266],
};

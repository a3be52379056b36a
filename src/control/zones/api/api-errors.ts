import type { ErrorCodes } from "../../api/errors.ts";
import type { zoneErrors } from "../errors.ts";

export const zoneErrorCodes: ErrorCodes<typeof zoneErrors> = {
  "zones.notFound": [404, 1001],
  "zones.exists": [400, 1061],
  "zones.pendingElsewhere": [400, 1061],
  "zones.insideForeign": [400, 1099],
  "zones.aroundForeign": [400, 1099],
  "zones.invalidName": [400, 1002],
  "zones.platformName": [400, 1097],
  "zones.oneChange": [400, 1053],
  "zones.noNameServers": [400, 1116],
  "zones.tooSoon": [429, 1224],
};

import type { ErrorCodes } from "../../../control/api/errors.ts";
import type { certificateErrors, packErrors } from "./errors.ts";

export const certificateErrorCodes: ErrorCodes<typeof certificateErrors> = {
  "certificates.notFound": [404, 1412],
  "certificates.unreadable": [400, 1400],
  "certificates.unreadableKey": [400, 1401],
  "certificates.mismatch": [400, 1402],
  "certificates.expired": [400, 1403],
  "certificates.foreign": [400, 1404],
  "certificates.tooMany": [400, 1406],
  "certificates.unsupported": [400, 1407],
  "certificates.noStaging": [400, 1409],
  "certificates.brokenChain": [400, 1405],
};

export const packErrorCodes: ErrorCodes<typeof packErrors> = {
  "certificatePacks.notFound": [404, 1415],
  "certificatePacks.noAuthority": [400, 1416],
  "certificatePacks.tooMany": [400, 1417],
  "certificatePacks.universal": [400, 1418],
  "certificatePacks.unknownMethod": [400, 1422],
  "certificatePacks.universalMethod": [400, 1423],
  "certificatePacks.host": [400, 1419],
  "certificatePacks.method": [400, 1420],
};

import type { ErrorCodes } from "../../../control/api/errors.ts";
import type { scriptDomainErrors, routeErrors, subdomainErrors } from "./errors.ts";

export const scriptDomainErrorCodes: ErrorCodes<typeof scriptDomainErrors> = {
  "scriptDomains.notFound": [404, 100114],
  "scriptDomains.taken": [409, 100117],
  "scriptDomains.hasRecords": [409, 100118],
  "scriptDomains.foreign": [409, 100115],
  "scriptDomains.outside": [400, 100116],
};

export const routeErrorCodes: ErrorCodes<typeof routeErrors> = {
  "scriptRoutes.notFound": [404, 10040],
  "scriptRoutes.forbidden": [403, 10000],
  "scriptRoutes.exists": [409, 10020],
  "scriptRoutes.invalid": [400, 10022],
};

export const subdomainErrorCodes: ErrorCodes<typeof subdomainErrors> = {
  "subdomains.none": [404, 10007],
  "subdomains.taken": [409, 10031],
  "subdomains.available": [404, 10032],
  "subdomains.invalid": [400, 10030],
};

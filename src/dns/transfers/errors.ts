import { ApiError } from "../../control/api/errors.ts";

/** Errors of zone transfers. */
export const transferErrors = {
  notFound: (what: string, id: string) =>
    new ApiError(404, 1260, `There is no ${what} ${id} in this account`),
  none: (zoneName: string) =>
    new ApiError(404, 1261, `${zoneName} has no outgoing transfer. Create it first`),
  disabled: (zoneName: string) =>
    new ApiError(409, 1267, `The outgoing transfer of ${zoneName} is disabled. Enable it first`),
  exists: (zoneName: string) =>
    new ApiError(409, 1262, `${zoneName} already has an outgoing transfer. Change it with PUT`),
  nameTaken: (name: string) =>
    new ApiError(409, 1263, `A TSIG key named ${name} already exists in this account`, {
      pointer: "/body/name",
    }),
  inUse: (what: string, user: string) =>
    new ApiError(409, 1264, `This ${what} is in use by ${user}. Change that first`),
  unknownReference: (field: string, id: string) =>
    new ApiError(400, 1265, `Expected ids of this account in ${field} but received ${id}`, {
      pointer: `/body/${field}`,
    }),
  notServed: (zoneName: string) =>
    new ApiError(
      400,
      1266,
      `Expected a zone of type full but ${zoneName} is partial, so its transfers come from its own name servers`,
    ),
};

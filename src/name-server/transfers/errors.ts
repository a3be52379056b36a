import { ApiError } from "../../api/errors.ts";

/** What can be wrong with a wish about zone transfers. */
export const transferErrors = {
  notFound: (what: string, id: string) =>
    new ApiError(404, 1260, `There is no ${what} ${id} in this account`),
  none: (zoneName: string) =>
    new ApiError(
      404,
      1261,
      `Expected an outgoing transfer of ${zoneName} but there is none. Create it first`,
    ),
  disabled: (zoneName: string) =>
    new ApiError(409, 1267, `Expected an outgoing transfer that is enabled but that of ${zoneName} is not`),
  exists: (zoneName: string) =>
    new ApiError(409, 1262, `${zoneName} has an outgoing transfer already. Change it with PUT`),
  nameTaken: (name: string) =>
    new ApiError(409, 1263, `Expected a name of no other TSIG of this account but received ${name}`, {
      pointer: "/body/name",
    }),
  inUse: (what: string, user: string) =>
    new ApiError(409, 1264, `This ${what} is used by ${user}. Change that first`),
  unknownReference: (field: string, id: string) =>
    new ApiError(400, 1265, `Expected ids of this account in ${field} but received ${id}`, {
      pointer: `/body/${field}`,
    }),
  notServed: (zoneName: string) =>
    new ApiError(
      400,
      1266,
      `Expected a zone of type full but ${zoneName} is partial: its own name servers give it to others`,
    ),
};

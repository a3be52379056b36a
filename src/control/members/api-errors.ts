import type { ErrorCodes } from "../api/errors.ts";
import type { memberErrors } from "./errors.ts";

export const memberErrorCodes: ErrorCodes<typeof memberErrors> = {
  "members.notFound": [404, 1003],
  "members.noRole": [404, 1003],
  "members.noMembership": [404, 1003],
  "members.exists": [409, 1060],
  "members.tooMany": [400, 1063],
  "members.lastOwner": [409, 1064],
  "members.noInvitation": [404, 1065],
  "members.userExists": [409, 1066],
  "members.noAccounts": [403, 1067],
};

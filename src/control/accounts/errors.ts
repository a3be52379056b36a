import { ApiError } from "../api/errors.ts";
import { show } from "../../platform/util/json.ts";

export const memberErrors = {
  notFound: (id: string) => new ApiError(404, 1003, `No member of the account has the id ${show(id)}`),
  noRole: (id: string) => new ApiError(404, 1003, `No role has the id ${show(id)}`),
  noMembership: (id: string) =>
    new ApiError(404, 1003, `The caller has no membership or invitation with the id ${show(id)}`),
  exists: (email: string) =>
    new ApiError(
      409,
      1060,
      `${email} is already a member of the account or invited to it. Remove that member or invitation first`,
    ),
  tooMany: (limit: number) =>
    new ApiError(400, 1063, `Expected at most ${limit} members and invitations in an account`),
  lastOwner: () =>
    new ApiError(
      409,
      1064,
      "An account needs at least one Super Administrator. Give another member that role first",
    ),
  /** One message for every reason, so that a caller cannot probe which invitations exist. */
  noInvitation: () =>
    new ApiError(
      404,
      1065,
      "The invitation does not exist, has expired or was answered, or the secret is wrong",
    ),
  userExists: (email: string, id: string) =>
    new ApiError(
      409,
      1066,
      `A user ${email} already exists. Accept the invitation with that user's credentials: PATCH /user/invites/${id} with {"status": "accepted", "secret": "…"}`,
    ),
  noAccounts: () =>
    new ApiError(403, 1067, "Invited users cannot create accounts. Ask the owner of this installation"),
};

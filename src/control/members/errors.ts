import { defineErrors } from "../../platform/domain-error.ts";
import { show } from "../../platform/util/json.ts";

export const memberErrors = defineErrors("members", {
  notFound: (id: string) => `No member of the account has the id ${show(id)}`,
  noRole: (id: string) => `No role has the id ${show(id)}`,
  noMembership: (id: string) => `The caller has no membership or invitation with the id ${show(id)}`,
  exists: (email: string) =>
    `${email} is already a member of the account or invited to it. Remove that member or invitation first`,
  tooMany: (limit: number) => `Expected at most ${limit} members and invitations in an account`,
  lastOwner: () => "An account needs at least one Super Administrator. Give another member that role first",
  /** One message for every reason, so that a caller cannot probe which invitations exist. */
  noInvitation: () => "The invitation does not exist, has expired or was answered, or the secret is wrong",
  userExists: (email: string, id: string) =>
    `A user ${email} already exists. Accept the invitation with that user's credentials: PATCH /user/invites/${id} with {"status": "accepted", "secret": "…"}`,
  noAccounts: () => "Invited users cannot create accounts. Ask the owner of this installation",
});

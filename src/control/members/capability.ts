import { capability } from "../../capability.ts";
import { storage } from "../../platform/capability.ts";
import { together } from "../api/together.ts";
import { dashboard } from "../sessions/capability.ts";
import { tokens } from "../tokens/capability.ts";
import { zones } from "../zones/capability.ts";
import { accounts } from "../accounts/capability.ts";
import { Members } from "./members.ts";
import { ensureOwner, type InstallationOwner } from "./owner.ts";
import { declaration } from "./declaration.ts";
import { memberErrors } from "./errors.ts";
import { memberErrorCodes } from "./api-errors.ts";

/** Users, their accounts, and the members of accounts. */
export const members = capability({
  name: "members",
  needs: [storage, accounts, tokens, dashboard, zones],
  create: (needed) => ({ members: new Members(needed.storage, needed.accounts, needed.tokens) }),
  errors: [{ title: "Members of accounts", errors: memberErrors, codes: memberErrorCodes }],
  async operations() {
    const { userOperations } = await import("./api-user.ts");
    const { accountOperations } = await import("./api-accounts.ts");
    const { memberOperations } = await import("./api-members.ts");
    const { membershipOperations } = await import("./api-memberships.ts");
    const { invitationOperations } = await import("./api-invitations.ts");
    return together([
      ...userOperations,
      ...accountOperations,
      ...memberOperations,
      ...membershipOperations,
      ...invitationOperations,
    ]);
  },
  idParameters: ["account_id", "membership_id", "member_id", "role_id", "invite_id", "organization_id"],
});

/** The first user and account, which the first start creates. */
export const owner = capability({
  name: "owner",
  declares: declaration,
  needs: [storage, accounts, tokens],
  create: () => ({ owner: { current: undefined as InstallationOwner | undefined } }),
  async load(services) {
    const { config, storage: database } = services;
    services.owner.current = await ensureOwner(config, database, services.accounts, services.tokens);
  },
});

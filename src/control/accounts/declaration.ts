import { declare, table } from "../../declaration.ts";
import type { InvitationsTable, AccountsTable, UsersTable, MembershipsTable } from "./tables.ts";

/** Accounts. */
export const declaration = declare({
  settings: {
    billing: {
      kind: "flag",
      flag: "billing",
      env: "SELVEDGE_BILLING",
      default: true,
      describe: "whether accounts have billing; without it, smart routing cannot be changed",
    },
  },
  tables: {
    accounts: table<AccountsTable>(),
    users: table<UsersTable>(),
    memberships: table<MembershipsTable>(),
    invitations: table<InvitationsTable>(),
  },
  migrations: {
    "0014-members": async () => (await import("./migrations/0014-members.ts")).members,
  },
  changes: ["account", "user"],
});

import type { Call } from "../../control/api/operation.ts";
import type { DatabaseCalls } from "./calls.ts";
import type { D1Database } from "./database.ts";
import type { Databases } from "./databases.ts";
import type { TimeTravel } from "./time-travel.ts";
import type { Transfers } from "./transfers/transfers.ts";
import type { DatabaseUsage } from "./usage/usage.ts";

/** The services that the operations use. */
export interface D1Services {
  d1Databases: Databases;
  d1Calls: DatabaseCalls;
  d1Transfers: Transfers;
  d1TimeTravel: TimeTravel;
  d1Usage: DatabaseUsage;
}

export const databasesPath = "/accounts/{account_id}/d1/database";
export const databasePath = `${databasesPath}/{database_id}`;
export const read = { access: { scope: "account", permission: "d1:read" } } as const;
export const edit = { access: { scope: "account", permission: "d1:edit" } } as const;

/** The database of the path, which names its id or its name. */
export const databaseOf = ({ account, params, services }: Call<unknown, unknown, D1Services>): D1Database =>
  services.d1Databases.get(account.id, params["database_id"]!);

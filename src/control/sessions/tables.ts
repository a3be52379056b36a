import type { Immutable } from "../../platform/storage/columns.ts";

/** A sign-in at the console. `id` is the hash of the cookie's value. */
export interface DashboardSessionsTable {
  id: Immutable<string>;
  token_id: Immutable<string>;
  /** The token's hash at the sign-in: a token with a new value ends its sessions. */
  token_hash: Immutable<string>;
  created_on: Immutable<number>;
  last_used_on: number;
}

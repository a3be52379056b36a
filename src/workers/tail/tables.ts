import type { Generated } from "kysely";
import type { Flag, Immutable } from "../../platform/storage/columns.ts";

/** `holder` is the node to which the tail's client is connected, or will connect. */
export interface TailsTable {
  id: Immutable<string>;
  account_id: Immutable<string>;
  script_id: Immutable<string | null>;
  filters: Immutable<string>;
  secret_hash: Immutable<string>;
  creator_kind: Immutable<"token" | "key">;
  creator_id: Immutable<string>;
  expires_on: Immutable<number>;
  holder: string;
  is_connected: Flag;
  seen_on: number;
}

export interface TailEventsTable {
  number: Generated<number>;
  tail_id: Immutable<string>;
  event: Immutable<string>;
}

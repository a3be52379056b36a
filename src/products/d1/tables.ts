import type { Immutable } from "../../platform/storage/columns.ts";

/** Databases of D1; their data is in objects. */
export interface D1DatabasesTable {
  id: Immutable<string>;
  account_id: Immutable<string>;
  name: Immutable<string>;
  location_hint: Immutable<string | null>;
  jurisdiction: Immutable<string | null>;
  read_replication: "auto" | "disabled";
  created_on: Immutable<number>;
}

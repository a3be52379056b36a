import type { Immutable } from "../../platform/storage/columns.ts";

export interface ApiTokensTable {
  id: Immutable<string>;
  owner_kind: Immutable<"user" | "account">;
  owner_id: Immutable<string>;
  name: string;
  status: "active" | "disabled";
  policies: string;
  condition: string | null;
  secret_hash: string;
  not_before: number | null;
  expires_on: number | null;
  issued_on: Immutable<number>;
  modified_on: number;
  last_used_on: number | null;
}

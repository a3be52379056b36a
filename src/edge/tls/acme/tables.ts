import type { Immutable } from "../../../platform/storage/columns.ts";

export interface AcmeAccountsTable {
  directory: Immutable<string>;
  private_key: Immutable<string>;
}

export interface AcmeChallengesTable {
  token: Immutable<string>;
  zone_id: Immutable<string>;
  kind: Immutable<"http" | "dns">;
  name: Immutable<string>;
  value: Immutable<string>;
  created_on: Immutable<number>;
}

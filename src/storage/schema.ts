import type { ColumnType, Generated } from "kysely";

/** Times are integer milliseconds, booleans are 0 or 1, and JSON is text: the same on SQLite and PostgreSQL. */
type Flag = 0 | 1;
type Immutable<T> = ColumnType<T, T, never>;

export interface AccountsTable {
  id: Immutable<string>;
  name: string;
  type: string;
  settings: string;
  has_billing: Flag;
  created_on: Immutable<number>;
}

export interface UsersTable {
  id: Immutable<string>;
  email: string;
  first_name: string | null;
  last_name: string | null;
  telephone: string | null;
  country: string | null;
  zipcode: string | null;
  api_key_hash: string | null;
  created_on: Immutable<number>;
  modified_on: number;
}

export interface MembershipsTable {
  id: Immutable<string>;
  account_id: Immutable<string>;
  user_id: Immutable<string>;
  status: string;
  roles: string;
  created_on: Immutable<number>;
}

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

export interface ZonesTable {
  id: Immutable<string>;
  account_id: Immutable<string>;
  name: Immutable<string>;
  type: string;
  status: string;
  paused: Flag;
  plan: string;
  name_servers: string;
  vanity_name_servers: string;
  verification_key: string | null;
  smart_routing: "on" | "off";
  smart_routing_modified_on: number | null;
  serial: number;
  record_count: number;
  created_on: Immutable<number>;
  modified_on: number;
  activated_on: number | null;
  checked_on: number | null;
}

export interface DnsRecordsTable {
  id: Immutable<string>;
  zone_id: Immutable<string>;
  type: string;
  name: string;
  content: string;
  data: string | null;
  priority: number | null;
  ttl: number;
  proxied: Flag;
  settings: string;
  comment: string | null;
  tags: string;
  created_on: Immutable<number>;
  modified_on: number;
  comment_modified_on: number | null;
  tags_modified_on: number | null;
}

export interface RulesetsTable {
  id: Immutable<string>;
  owner_kind: Immutable<"zone" | "account">;
  owner_id: Immutable<string>;
  kind: Immutable<string>;
  phase: Immutable<string>;
  name: string;
  description: string;
  version: number;
  rules: string;
  last_updated: number;
}

/** On PostgreSQL, every committed configuration change; see change-log.ts. */
export interface ChangesTable {
  seq: Generated<number>;
  kind: Immutable<string>;
  id: Immutable<string>;
  parent_id: Immutable<string | null>;
  logged_on: Immutable<number>;
}

export interface MetaTable {
  key: Immutable<string>;
  value: string;
}

export interface Database {
  accounts: AccountsTable;
  users: UsersTable;
  memberships: MembershipsTable;
  api_tokens: ApiTokensTable;
  zones: ZonesTable;
  dns_records: DnsRecordsTable;
  rulesets: RulesetsTable;
  changes: ChangesTable;
  meta: MetaTable;
}

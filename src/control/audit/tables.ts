import type { Immutable, OrderOnly } from "../../platform/storage/columns.ts";

/**
 * The audit log. Rows have no foreign keys and contain the names of their resources, so they stay readable after a
 * resource is deleted. The id is a UUIDv7, which contains the time and orders the rows.
 */
export interface AuditLogsTable {
  id: Immutable<string>;
  /** Empty for an entry of no account. */
  account_id: Immutable<string>;
  account_name: Immutable<string | null>;
  /** The user who acted, or whose own data changed. */
  user_id: Immutable<string | null>;
  zone_id: Immutable<string | null>;
  zone_name: Immutable<string | null>;
  action_result: "success" | "failure";
  action_type: Immutable<ActionType>;
  operation: Immutable<string>;
  description: Immutable<string>;
  actor_context: Immutable<"api_key" | "api_token" | "dash" | null>;
  actor_email: Immutable<string | null>;
  actor_id: Immutable<string | null>;
  actor_ip_address: Immutable<string | null>;
  actor_token_id: Immutable<string | null>;
  actor_token_name: Immutable<string | null>;
  actor_type: Immutable<"account" | "system" | "user">;
  raw_cf_ray_id: Immutable<string | null>;
  raw_method: Immutable<string | null>;
  raw_status_code: number | null;
  raw_uri: Immutable<string | null>;
  raw_user_agent: Immutable<string | null>;
  resource_id: Immutable<string | null>;
  resource_product: Immutable<string>;
  resource_scope: Immutable<"accounts" | "memberships" | "user" | "zones">;
  resource_type: Immutable<string>;
  /** JSON, without secrets: the body of the call, and the resource before it. */
  request: Immutable<string | null>;
  before: Immutable<string | null>;
}

/**
 * Entries on SQLite that are not in `audit_logs` yet. A row without an index costs a change a third of what one in that table
 * does, so the indexes follow for many entries at once.
 */
export interface AuditLogTailTable extends AuditLogsTable {
  number: OrderOnly;
}

export type ActionType = "create" | "delete" | "update" | "view";

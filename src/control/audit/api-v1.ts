import { z } from "zod";
import { AddressSet, isNetwork } from "../access/address-set.ts";
import type { Page } from "../api/envelope.ts";
import { apiErrors } from "../api/errors.ts";
import { operationsFor } from "../api/operation.ts";
import { pageQuery, queryFlag } from "../api/pagination.ts";
import { isoTime } from "../../platform/util/ids.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { timeOfEntry } from "./entry-id.ts";
import { directionQuery, TimeQuery } from "./api-query.ts";
import { addresses, page as pageOf } from "./search.ts";
import type * as store from "./store.ts";

/** The services that these operations use. */
interface Services {
  storage: Storage;
}

const { listOperation } = operationsFor<Services>();

const LogSchema = z
  .object({
    id: z.string(),
    action: z.object({ result: z.boolean(), type: z.string() }),
    actor: z.object({
      id: z.string().optional(),
      email: z.string().optional(),
      ip: z.string().optional(),
      type: z.enum(["user", "admin", "Cloudflare"]),
    }),
    interface: z.string(),
    metadata: z.object({}).catchall(z.unknown()),
    newValue: z.string(),
    oldValue: z.string(),
    owner: z.object({ id: z.string().optional() }),
    resource: z.object({ id: z.string().optional(), type: z.string() }),
    when: z.string().meta({ format: "date-time" }),
  })
  .meta({ id: "AuditLog", description: "A change, in the form of version 1" });

/** An entry in the form of version 1 of the public API. */
export type AuditLog = z.input<typeof LogSchema>;

/** An entry in the form of version 1. The new value is the old one with the fields of the request. */
export function logResource(row: store.AuditEntry): AuditLog {
  const isEdit = row.raw_method === "PATCH" && row.before !== null && row.request !== null;
  return {
    id: row.id,
    action: { result: row.action_result === "success", type: row.operation },
    actor: {
      id: row.actor_id ?? undefined,
      email: row.actor_email ?? undefined,
      ip: row.actor_ip_address ?? undefined,
      type: row.actor_type === "system" ? "Cloudflare" : "user",
    },
    interface: row.actor_type === "system" ? "system" : row.actor_context === "dash" ? "UI" : "API",
    metadata: {
      action: row.description,
      action_type: row.action_type,
      ...(row.zone_name === null ? {} : { zone_name: row.zone_name }),
      ...(row.actor_token_id === null
        ? {}
        : { token_id: row.actor_token_id, token_name: row.actor_token_name }),
    },
    newValue: isEdit ? merged(row.before!, row.request!) : (row.request ?? ""),
    oldValue: row.before ?? "",
    owner: { id: row.account_id === "" ? (row.user_id ?? undefined) : row.account_id },
    resource: { id: row.resource_id ?? undefined, type: row.resource_type },
    when: isoTime(timeOfEntry(row.id)),
  };
}

function merged(before: string, request: string): string {
  const [old, changed] = [before, request].map((json) => JSON.parse(json) as object) as [object, object];
  return JSON.stringify({ ...old, ...changed });
}

const LogQuery = z.strictObject({
  ...pageQuery({ default: 100, max: 1000 }).shape,
  id: z.string().max(64).optional(),
  "action.type": z.string().max(128).optional(),
  "actor.email": z.string().max(320).optional(),
  "actor.ip": z
    .string()
    .max(64)
    .refine(isNetwork, { error: "an IP address or a network such as 192.0.2.0/24" })
    .optional(),
  "zone.name": z.string().max(253).optional(),
  before: TimeQuery.optional(),
  since: TimeQuery.optional(),
  direction: directionQuery,
  export: queryFlag.optional(),
  hide_user_logs: queryFlag.optional(),
});

/** Databases limit the number of parameters of a query. */
const addressesMax = 10_000;

async function page(
  { storage }: Services,
  of: store.Search["of"],
  query: z.output<typeof LogQuery>,
): Promise<Page<z.input<typeof LogSchema>>> {
  if (query.export === true)
    throw apiErrors.invalid(
      "Expected no export: this installation returns the log only as pages of JSON",
      "/query/export",
    );
  const has: Record<string, readonly string[]> = {};
  if (query.id !== undefined) has["id"] = [query.id];
  if (query["action.type"] !== undefined) has["operation"] = [query["action.type"]];
  if (query["actor.email"] !== undefined) has["actor_email"] = [query["actor.email"]];
  if (query["zone.name"] !== undefined) has["zone_name"] = [query["zone.name"]];
  const search: store.Search = {
    of,
    sinceMs: query.since,
    beforeMs: query.before,
    direction: query.direction,
    has,
    not: query.hide_user_logs === true ? { resource_scope: ["user"] } : {},
  };
  const network = query["actor.ip"];
  if (network !== undefined) {
    const inside = new AddressSet([network], []);
    const known = await addresses(storage.read, search, addressesMax + 1);
    if (known.length > addressesMax)
      throw apiErrors.invalid(
        `Expected since and before with fewer than ${addressesMax} addresses between them for actor.ip`,
        "/query/actor.ip",
      );
    has["actor_ip_address"] = known.filter((address) => inside.has(address));
  }
  const part = { limit: query.per_page, offset: (query.page - 1) * query.per_page };
  const { rows, count } = await pageOf(storage.read, search, part);
  return { items: rows.map(logResource), page: query.page, perPage: query.per_page, totalCount: count };
}

export const auditLogOperations = [
  listOperation({
    id: "audit_log_list",
    method: "GET",
    path: "/accounts/{account_id}/audit_logs",
    summary: "List the audit log of the account",
    access: { scope: "account", permission: "account_settings:read" },
    query: LogQuery,
    result: LogSchema,
    handle: async ({ account, query, services }) => page(services, { account_id: account.id }, query),
  }),
  listOperation({
    id: "user_audit_log_list",
    method: "GET",
    path: "/user/audit_logs",
    summary: "List the changes that the user made, in all accounts, also in deleted ones",
    access: { scope: "user", permission: "user_details:read" },
    query: LogQuery,
    result: LogSchema,
    handle: async ({ actor, query, services }) => page(services, { user_id: actor.userId! }, query),
  }),
];

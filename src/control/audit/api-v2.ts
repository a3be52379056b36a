import { z } from "zod";
import { ApiError, apiErrors } from "../api/errors.ts";
import { operationsFor, type Call } from "../api/operation.ts";
import { isoTime } from "../../platform/util/ids.ts";
import { show, showList } from "../../platform/util/json.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { productCategories } from "./describe.ts";
import { timeOfEntry } from "./entry-id.ts";
import { afterCursor, cursorAfter, directionQuery, filterShape, filtersOf, TimeQuery } from "./api-query.ts";
import { first } from "./search.ts";
import * as store from "./store.ts";

/** The services that these operations use. */
interface Services {
  storage: Storage;
}

const { operation } = operationsFor<Services>();

const text = z.string().optional();
const EntrySchema = z
  .object({
    id: z.string(),
    account: z.object({ id: text, name: text }),
    action: z.object({
      description: z.string(),
      result: z.enum(["success", "failure"]),
      time: z.string().meta({ format: "date-time" }),
      type: z.enum(["create", "delete", "update", "view"]),
    }),
    actor: z.object({
      id: text,
      context: z.enum(["api_key", "api_token", "dash"]).optional(),
      email: text,
      ip_address: text,
      token_id: text,
      token_name: text,
      type: z.enum(["account", "system", "user"]),
    }),
    raw: z.object({
      cf_ray_id: text,
      method: text,
      status_code: z.int().optional(),
      uri: text,
      user_agent: text,
    }),
    resource: z.object({
      id: text,
      product: z.string(),
      type: z.string(),
      scope: z.enum(["accounts", "memberships", "user", "zones"]),
      request: z.unknown().optional(),
      before: z.unknown().optional().meta({ description: "the resource before the change" }),
    }),
    zone: z.object({ id: text, name: text }).optional(),
  })
  .meta({ id: "AuditEntry", description: "A change, and its author" });

const jsonOf = (column: string | null): unknown => (column === null ? undefined : JSON.parse(column));

/** An entry in the form of version 2 of the public API. */
export const entryResource = (row: store.AuditEntry): z.input<typeof EntrySchema> => ({
  id: row.id,
  account: { id: row.account_id === "" ? undefined : row.account_id, name: row.account_name ?? undefined },
  action: {
    description: row.description,
    result: row.action_result,
    time: isoTime(timeOfEntry(row.id)),
    type: row.action_type,
  },
  actor: {
    id: row.actor_id ?? undefined,
    context: row.actor_context ?? undefined,
    email: row.actor_email ?? undefined,
    ip_address: row.actor_ip_address ?? undefined,
    token_id: row.actor_token_id ?? undefined,
    token_name: row.actor_token_name ?? undefined,
    type: row.actor_type,
  },
  raw: {
    cf_ray_id: row.raw_cf_ray_id ?? undefined,
    method: row.raw_method ?? undefined,
    status_code: row.raw_status_code ?? undefined,
    uri: row.raw_uri ?? undefined,
    user_agent: row.raw_user_agent ?? undefined,
  },
  resource: {
    id: row.resource_id ?? undefined,
    product: row.resource_product,
    type: row.resource_type,
    scope: row.resource_scope,
    request: jsonOf(row.request),
    before: jsonOf(row.before),
  },
  zone: row.zone_id === null ? undefined : { id: row.zone_id, name: row.zone_name ?? undefined },
});

const categories = Object.keys(productCategories);
const CategoryQuery = z.string().max(64);
const pageShape = {
  before: TimeQuery,
  since: TimeQuery,
  cursor: z.string().max(128).optional(),
  direction: directionQuery,
  limit: z.coerce.number().int().min(1).max(1000).default(100),
};
type PageQuery = z.output<z.ZodObject<typeof pageShape>>;

const path = "/accounts/{account_id}/logs/audit";
const access = { scope: "account", permission: "account_settings:read" } as const;

export const auditOperationsV2 = [
  operation({
    id: "audit_log_list_v2",
    method: "GET",
    path,
    summary: "List the audit log of the account; a cursor continues after the last entry",
    access,
    query: z.strictObject({
      ...pageShape,
      ...filterShape,
      product_category: z.union([z.array(CategoryQuery).max(20), CategoryQuery]).optional(),
    }),
    result: z.array(EntrySchema),
    async handle(call) {
      const { account, query } = call;
      const search = searchOf(account.id, query, filtersOf(query as Record<string, unknown>));
      const products = productsOf(query.product_category);
      // The products of the categories join those of the filter.
      if (products !== undefined)
        search.has.resource_product = [...(search.has.resource_product ?? []), ...products];
      return listPart(call, search, query);
    },
  }),
  operation({
    id: "audit_log_history",
    method: "GET",
    path: `${path}/{audit_log_id}/history`,
    summary: "List the changes of the resource that an entry names",
    access,
    query: z.strictObject({ ...pageShape, action_time: TimeQuery }),
    result: z.array(EntrySchema),
    async handle(call) {
      const { account, params, query, services } = call;
      const id = params["audit_log_id"]!;
      const entry = await store.find(services.storage.read, account.id, id);
      if (entry === undefined) throw new ApiError(404, 10000, `No audit entry has the id ${show(id)}`);
      if (Math.abs(timeOfEntry(entry.id) - query.action_time) > dayMs)
        throw apiErrors.invalid(
          `Expected the time of the entry, ${isoTime(timeOfEntry(entry.id))}, for action_time`,
          "/query/action_time",
        );
      if (entry.resource_id === null) {
        call.resultInfo = { count: 0, history_status: "unavailable" };
        return [];
      }
      const { resource_id, resource_product, zone_id } = entry;
      const search = searchOf(account.id, query, {
        has: {
          resource_id: [resource_id],
          resource_product: [resource_product],
          ...(zone_id === null ? {} : { zone_id: [zone_id] }),
        },
        not: {},
      });
      const found = await listPart(call, search, query);
      call.resultInfo!["history_status"] = "exact";
      return found;
    },
  }),
  operation({
    id: "audit_log_product_categories",
    method: "GET",
    path: `${path}/product_categories`,
    summary: "List the categories that the filter product_category knows",
    access,
    result: z.array(
      z.object({
        value: z.string(),
        label: z.string(),
        products: z.array(z.object({ value: z.string(), label: z.string() })),
      }),
    ),
    handle: async () =>
      Object.entries(productCategories).map(([value, { label, products }]) => ({
        value,
        label,
        products: products.map((product) => ({ value: product, label: product.replaceAll("_", " ") })),
      })),
  }),
];

const dayMs = 86_400_000;

function searchOf(
  accountId: string,
  { since, before, direction }: PageQuery,
  filters: Pick<store.Search, "has" | "not">,
): store.Search {
  return { of: { account_id: accountId }, sinceMs: since, beforeMs: before, direction, ...filters };
}

async function listPart(
  call: Pick<Call<unknown, unknown, Services>, "services" | "resultInfo">,
  search: store.Search,
  { limit, cursor }: PageQuery,
): Promise<z.input<typeof EntrySchema>[]> {
  const from = { ...search, after: afterCursor(cursor) };
  const { rows, after } = await first(call.services.storage.read, from, limit);
  call.resultInfo = {
    count: rows.length,
    cursors: after === undefined ? {} : { after: cursorAfter(after) },
  };
  return rows.map(entryResource);
}

function productsOf(given: string | string[] | undefined): readonly string[] | undefined {
  if (given === undefined) return undefined;
  return [given].flat().flatMap((name) => {
    const category = productCategories[name.toLowerCase() as keyof typeof productCategories];
    if (Object.hasOwn(productCategories, name.toLowerCase())) return category.products;
    throw apiErrors.invalid(
      `Expected one of ${showList(categories)} for product_category but received ${show(name)}`,
      "/query/product_category",
    );
  });
}

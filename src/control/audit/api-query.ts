import { z } from "zod";
import { apiErrors } from "../api/errors.ts";
import type { Search } from "./store.ts";

const dayOrTime = /^\d{4}-\d\d-\d\d$|^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/;

/** A day, such as 2026-10-31 (UTC), or a time of RFC 3339; in epoch milliseconds. */
export const TimeQuery = z
  .string()
  .max(64)
  .refine((text) => dayOrTime.test(text) && !Number.isNaN(Date.parse(text)), {
    error: "a date such as 2026-10-31, or a time such as 2026-10-31T12:00:00Z",
  })
  .transform((text) => Date.parse(text))
  .meta({ format: "date-time" });

export const directionQuery = z.enum(["asc", "desc"]).default("desc");

const valuesMax = 50;
/** One value, or several under the same name. */
const several = <S extends z.ZodType>(schema: S) =>
  z
    .union([z.array(schema).min(1).max(valuesMax), schema])
    .transform((value): z.output<S>[] => (Array.isArray(value) ? value : [value]))
    .optional();

const text = z.string().max(512);

/** The filters of the public API, by the column that they compare. `audit_log_id` is an older name of `id`. */
const filters = {
  id: text,
  audit_log_id: text,
  account_name: text,
  action_result: z.enum(["success", "failure"]),
  action_type: z.enum(["create", "delete", "view", "update"]),
  actor_context: z.enum(["api", "api_key", "api_token", "dash", "oauth", "origin_ca_key"]),
  actor_email: text,
  actor_id: text,
  actor_ip_address: text,
  actor_token_id: text,
  actor_token_name: text,
  actor_type: z.enum(["account", "cloudflare_admin", "delegated_service", "system", "user"]),
  raw_cf_ray_id: text,
  raw_method: text,
  raw_status_code: z.coerce.number().int().min(100).max(599),
  raw_uri: text,
  resource_id: text,
  resource_product: text,
  resource_scope: z.enum(["accounts", "user", "zones", "memberships"]),
  resource_type: text,
  zone_id: text,
  zone_name: text,
} as const;
type Filter = keyof typeof filters;

const filterNames = Object.keys(filters) as Filter[];

/** The query parameters of the filters: each by its name, and with `.not` for entries without these values. */
export const filterShape = Object.fromEntries(
  filterNames.flatMap((name) => [
    [name, several(filters[name])],
    [`${name}.not`, several(filters[name])],
  ]),
) as unknown as Record<Filter | `${Filter}.not`, z.ZodType<(string | number)[] | undefined>>;

type Values = Record<string, readonly (string | number)[]>;

/** The filters of a query, by column. */
export function filtersOf(query: Partial<Record<string, unknown>>): Pick<Search, "has" | "not"> {
  const [has, not]: [Values, Values] = [{}, {}];
  for (const name of filterNames) {
    const column = name === "audit_log_id" ? "id" : name;
    const [wanted, unwanted] = [query[name], query[`${name}.not`]] as (string[] | undefined)[];
    if (wanted !== undefined) has[column] = narrowed(has[column], wanted);
    if (unwanted !== undefined) not[column] = [...(not[column] ?? []), ...unwanted];
  }
  return { has, not };
}

/** The values that both filters on a column allow. */
export function narrowed<T>(before: readonly T[] | undefined, next: readonly T[]): readonly T[] {
  return before === undefined ? next : next.filter((value) => before.includes(value));
}

/** Reads the cursor: the id after which a list continues. */
export function afterCursor(cursor: string | undefined): string | undefined {
  if (cursor === undefined || cursor === "") return undefined;
  const id = Buffer.from(cursor, "base64url").toString();
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) return id;
  throw apiErrors.invalid(
    `Expected a cursor of an earlier answer but received ${JSON.stringify(cursor)}`,
    "/query/cursor",
  );
}

export const cursorAfter = (id: string): string => Buffer.from(id).toString("base64url");

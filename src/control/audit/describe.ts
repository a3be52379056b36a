import type { Call, Operation } from "../api/operation.ts";
import type { ActionType, AuditLogsTable } from "./tables.ts";

/** The parts of an entry that follow from the declaration of the operation. */
export interface Described {
  action: ActionType;
  product: string;
  type: string;
  scope: AuditLogsTable["resource_scope"]["__select__"];
  /** The parameter of the path that names the resource. */
  idParameter: string | undefined;
}

/** Whether a call of an operation leaves an entry when it succeeds. */
export const isAudited = (
  { method, audit, isRefusal, isDry }: Operation,
  { body, query }: Partial<Pick<Call<unknown, unknown, object>, "body" | "query">>,
): boolean =>
  method !== "GET" &&
  audit !== "none" &&
  isRefusal !== true &&
  isDry?.(body as never, query as never) !== true;

/** The type of an entry: "view" for calls that only read. */
export const actionTypeOf = (operation: Operation, body: unknown): ActionType => {
  const { isView } = operation;
  const reads = isView === true || (body !== undefined && isView?.(body as never) === true);
  return reads ? "view" : describe(operation).action;
};

const described = new WeakMap<Operation, Described>();

export function describe(operation: Operation): Described {
  const known = described.get(operation);
  if (known !== undefined) return known;
  const parts = operation.path.split("/").slice(1);
  const owner = parts[0] === "accounts" && parts.length > 2 ? "accounts" : parts[0]!;
  const inside = parts.slice(owner === "accounts" || owner === "zones" ? 2 : 0);
  const names = inside.filter((part) => !part.startsWith("{"));
  const parameters = parts.filter((part) => part.startsWith("{")).map((part) => part.slice(1, -1));
  const answer: Described = {
    action: actionOf(operation),
    product: productOf(operation, parts[0]!),
    type: names.at(-1) ?? parts[0]!,
    scope: owner === "zones" || owner === "user" || owner === "memberships" ? owner : "accounts",
    idParameter: parameters.at(-1),
  };
  described.set(operation, answer);
  return answer;
}

function actionOf({ id, method }: Operation): ActionType {
  if (method === "GET") return "view";
  if (method === "DELETE") return "delete";
  return method === "POST" && /_(create|upload|order|restore)(_|$)/.test(id) ? "create" : "update";
}

function productOf({ access }: Operation, first: string): string {
  if ("permission" in access) return access.permission.split(":")[0]!;
  return { zones: "zone", accounts: "account_settings", user: "user_details" }[first] ?? first;
}

/** The product of rows that the system changes, by the kind of the change. */
const productsOfKinds: Readonly<Record<string, string>> = {
  zone: "zone",
  account: "account_settings",
  user: "user_details",
  api_token: "account_tokens",
  dns_record: "dns_records",
  dnssec: "dns_records",
  zone_transfers: "dns_records",
  zone_setting: "zone_settings",
  bot_management: "zone_settings",
  certificate: "ssl_certificates",
  certificate_pack: "ssl_certificates",
  ruleset: "origin_rules",
  snippet: "snippets",
  queue: "queues",
  d1_database: "d1",
  worker_route: "workers_routes",
  logpush_job: "logs",
};

/** Kinds of change that accompany another one or only inform nodes. They leave no entry of the system. */
const bookkeeping = new Set(["acme_challenge", "dns_serial", "dashboard_session", "tail"]);

export const isBookkeeping = (kind: string): boolean => bookkeeping.has(kind);
export const productOfKind = (kind: string): string => productsOfKinds[kind] ?? "workers_scripts";

/** The products of each category, as the filter `product_category` expands it. */
export const productCategories = {
  dns: { label: "DNS", products: ["dns_records"] },
  zones: { label: "Zones", products: ["zone", "zone_settings", "smart_routing"] },
  rules: { label: "Rules", products: ["origin_rules", "snippets"] },
  ssl: { label: "SSL/TLS", products: ["ssl_certificates"] },
  workers: {
    label: "Workers",
    products: ["workers_scripts", "workers_routes", "workers_tail", "workers_kv", "d1", "queues"],
  },
  images: { label: "Images", products: ["images"] },
  account: {
    label: "Accounts and members",
    products: [
      "account_settings",
      "account_tokens",
      "memberships",
      "user_details",
      "user_tokens",
      "logs",
      "account_logs",
    ],
  },
} as const satisfies Record<string, { label: string; products: readonly string[] }>;

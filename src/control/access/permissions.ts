import { createHash } from "node:crypto";

export type PermissionScope = "zone" | "account" | "user";
type Level = "read" | "edit";
const scopeNames = {
  zone: "com.cloudflare.api.account.zone",
  account: "com.cloudflare.api.account",
  user: "com.cloudflare.api.user",
} as const;

/**
 * Areas of permissions, by their key in this code: the public name, and the kind of resource they apply to.
 */
const areas = {
  zone: { name: "Zone", scope: "zone" },
  dns_records: { name: "DNS", scope: "zone" },
  zone_settings: { name: "Zone Settings", scope: "zone" },
  smart_routing: { name: "Smart Routing", scope: "zone" },
  snippets: { name: "Snippets", scope: "zone" },
  origin_rules: { name: "Origin Rules", scope: "zone" },
  ssl_certificates: { name: "SSL and Certificates", scope: "zone" },
  workers_routes: { name: "Workers Routes", scope: "zone" },
  logs: { name: "Logs", scope: "zone" },
  account_settings: { name: "Account Settings", scope: "account" },
  request_tracer: { name: "Allow Request Tracer", scope: "account" },
  account_tokens: { name: "Account API Tokens", scope: "account" },
  account_logs: { name: "Account Logs", scope: "account" },
  workers_scripts: { name: "Workers Scripts", scope: "account" },
  workers_kv: { name: "Workers KV Storage", scope: "account" },
  workers_tail: { name: "Workers Tail", scope: "account" },
  d1: { name: "D1", scope: "account" },
  queues: { name: "Queues", scope: "account" },
  images: { name: "Cloudflare Images", scope: "account" },
  user_details: { name: "User Details", scope: "user" },
  memberships: { name: "Memberships", scope: "user" },
  user_tokens: { name: "API Tokens", scope: "user" },
} as const satisfies Record<string, { name: string; scope: PermissionScope }>;

/** A permission in this code, such as "dns_records:edit". */
export type PermissionKey = `${keyof typeof areas}:${Level}`;

/** A permission in the form of the public API, which calls it a permission group. */
export interface PermissionGroup {
  id: string;
  key: PermissionKey;
  name: string;
  scopes: string[];
  scope: PermissionScope;
}

/** Ids that Cloudflare publishes, so that automation with fixed ids works here too. */
const publicIds: Partial<Record<PermissionKey, string>> = {
  "dns_records:read": "82e64a83756745bbbb1c9c2701bf816b",
  "dns_records:edit": "4755a26eedb94da69e1066d98aa820be",
  "zone:read": "c8fed203ed3043cba015a93ad1616f1f",
  "zone:edit": "e6d2666161e84845a636613608cee8d5",
  "zone_settings:edit": "3030687196b94b638145a3953da2b699",
};

const derivedId = (key: string): string =>
  createHash("sha256").update(`permission:${key}`).digest("hex").slice(0, 32);

/** All permissions: read and edit for every area. Ids that are not public are derived from the key. */
export const permissionGroups: readonly PermissionGroup[] = Object.entries(areas).flatMap(
  ([area, { name, scope }]) =>
    (["read", "edit"] as const).map((level) => {
      const key = `${area}:${level}` as PermissionKey;
      return {
        id: publicIds[key] ?? derivedId(key),
        key,
        name: `${name} ${level === "read" ? "Read" : "Write"}`,
        scopes: [scopeNames[scope]],
        scope,
      };
    }),
);

/** The kind of resource that each permission applies to. */
export const permissionScopes: ReadonlyMap<PermissionKey, PermissionScope> = new Map(
  permissionGroups.map(({ key, scope }) => [key, scope]),
);

const byId = new Map(permissionGroups.map((group) => [group.id, group]));
const byName = new Map(permissionGroups.map((group) => [group.name, group]));

/** Finds a group by its id, or by its name if no id is given. */
export const findPermissionGroup = (
  id: string | undefined,
  name: string | undefined,
): PermissionGroup | undefined => (id === undefined ? byName.get(name ?? "") : byId.get(id));

import {
  permissionGroups,
  permissionScopes,
  type PermissionKey,
  type PermissionScope,
} from "../access/permissions.ts";
import type { Policy } from "../access/policies.ts";

/** A named set of permissions in an account and on all of its zones. */
export interface Role {
  /** The id that Cloudflare publishes, so that automation with fixed ids works here too. */
  id: string;
  name: string;
  description: string;
  /** Complete: for every `edit`, the matching `read` is listed too. */
  permissions: ReadonlySet<PermissionKey>;
}

const grantable = permissionGroups.filter(({ scope }) => scope !== "user").map(({ key }) => key);
const readable = grantable.filter((key) => key.endsWith(":read"));

function role(id: string, name: string, description: string, granted: readonly PermissionKey[]): Role {
  const brought = granted.map((key) => key.replace(/:edit$/, ":read") as PermissionKey);
  return { id, name, description, permissions: new Set([...granted, ...brought]) };
}

const workers: PermissionKey[] = [
  "account_settings:read",
  "workers_scripts:edit",
  "workers_kv:edit",
  "workers_tail:edit",
  "queues:edit",
  "zone:read",
  "workers_routes:edit",
];

/**
 * Has all permissions. The creator of an account gets it, and every account keeps at least one member with
 * it.
 */
export const ownerRole = role(
  "33666b9c79b9a5273fc7344ff42f953d",
  "Super Administrator - All Privileges",
  "Can change everything in the account, and manage its members",
  grantable,
);

export const roles: readonly Role[] = [
  ownerRole,
  role(
    "05784afa30c1afe1440e79d9351c7430",
    "Administrator",
    "Can change everything in the account except the account itself and its members",
    grantable.filter((key) => key !== "account_settings:edit"),
  ),
  role(
    "f2b20eaa1a5d4af42b53ac16238c99c7",
    "Administrator Read Only",
    "Can read everything in the account",
    readable,
  ),
  role("069fe803647ed3609e93d041d5df6050", "DNS", "Can change DNS records", [
    "account_settings:read",
    "zone:read",
    "dns_records:edit",
  ]),
  role(
    "75f36071fa06ebfac6da0c3f8ddbc4df",
    "SSL/TLS, Caching, Performance, Page Rules, and Customization",
    "Can change certificates, settings, rules, snippets and smart routing of zones",
    [
      "account_settings:read",
      "zone:read",
      "zone_settings:edit",
      "ssl_certificates:edit",
      "origin_rules:edit",
      "snippets:edit",
      "smart_routing:edit",
    ],
  ),
  role(
    "57280df9f1a5806e04f065b07bbdd17a",
    "Workers Platform Admin",
    "Can change scripts, key-value namespaces, queues, workflows and routes",
    workers,
  ),
  role(
    "e58cefd75d7adae0b761796c28815e5c",
    "Workers Platform (Read-only)",
    "Can read scripts, key-value namespaces, queues, workflows and routes",
    workers.map((key) => key.replace(/:edit$/, ":read") as PermissionKey),
  ),
  role("94bedef1a0bdd311891188867727e42d", "Cloudflare Images", "Can change images", [
    "account_settings:read",
    "images:edit",
  ]),
  role(
    "5c35d2bf3a545e6b7560b826c0d23c39",
    "Minimal Account Access",
    "Can see the account, but nothing in it",
    ["account_settings:read"],
  ),
];

const byId = new Map(roles.map((each) => [each.id, each]));
const byName = new Map(roles.map((each) => [each.name, each]));
export const findRole = (id: string): Role | undefined => byId.get(id);

/** The roles with these names. Unknown names are skipped. */
export const rolesNamed = (names: readonly string[]): Role[] =>
  names.flatMap((name) => byName.get(name) ?? []);

/** The union of the permissions of the roles with these names. */
export const permissionsOf = (names: readonly string[]): ReadonlySet<PermissionKey> =>
  new Set(rolesNamed(names).flatMap(({ permissions }) => [...permissions]));

/** The policies that give an account token the same permissions as the roles with these names. */
export function policiesOf(names: readonly string[], accountId: string): Policy[] {
  const permissions = permissionsOf(names);
  const account = `com.cloudflare.api.account.${accountId}`;
  const resources = {
    account: { [account]: "*" as const },
    zone: { [account]: { "com.cloudflare.api.account.zone.*": "*" as const } },
  };
  const groups = (scope: PermissionScope) =>
    permissionGroups
      .filter(({ key }) => permissions.has(key) && permissionScopes.get(key) === scope)
      .map(({ id, name }) => ({ id, name }));
  return (["account", "zone"] as const).map((scope) => ({
    id: scope,
    effect: "allow",
    resources: resources[scope],
    permission_groups: groups(scope),
  }));
}

export type Grants = Record<string, { read: boolean; write: boolean }>;

/** Read and write grants by the areas that the API shows for roles and memberships. */
export function grantsOf(permissions: ReadonlySet<PermissionKey>): Grants {
  const areas = {
    zones: "zone",
    dns_records: "dns_records",
    zone_settings: "zone_settings",
    ssl: "ssl_certificates",
    organization: "account_settings",
  } as const;
  return Object.fromEntries(
    Object.entries(areas).map(([area, key]) => [
      area,
      { read: permissions.has(`${key}:read`), write: permissions.has(`${key}:edit`) },
    ]),
  );
}

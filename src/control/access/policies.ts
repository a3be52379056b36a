import { isId } from "../../platform/util/ids.ts";
import {
  findPermissionGroup,
  permissionScopes,
  type PermissionKey,
  type PermissionScope,
} from "./permissions.ts";

/** A policy as the API shows it. */
export interface Policy {
  id: string;
  effect: "allow" | "deny";
  resources: Record<string, "*" | Record<string, "*">>;
  permission_groups: { id: string; name: string }[];
}

/** The resource that a call is about. A zone always comes with its account. */
export interface AccessTarget {
  accountId?: string;
  zoneId?: string;
  userId?: string;
}

interface Grant {
  allow: boolean;
  permissions: ReadonlySet<PermissionKey>;
  /** Keys are kind and id. Values are the accounts that the zone must belong to, "*" for any. */
  resources: ReadonlyMap<string, ReadonlySet<string>>;
}
/** `id` may be "*". `accountId` limits zones to one account. */
export type Resource = { kind: PermissionScope; id: string; accountId?: string };

const zonePrefix = "com.cloudflare.api.account.zone.";
const accountPrefix = "com.cloudflare.api.account.";
const userPrefix = "com.cloudflare.api.user.";

/** Parses a resource name such as "com.cloudflare.api.account.zone.<id>"; undefined if it is not valid. */
export function parseResource(name: string): Resource | undefined {
  for (const [prefix, kind] of [
    [zonePrefix, "zone"],
    [accountPrefix, "account"],
    [userPrefix, "user"],
  ] as const) {
    if (!name.startsWith(prefix)) continue;
    const id = name.slice(prefix.length);
    return id === "*" || isId(id) ? { kind, id } : undefined;
  }
  return undefined;
}

/**
 * Policies, indexed for checks. Deny overrides allow, and edit includes read. Allowing applies only to the
 * permission's own kind of resource: naming an account allows nothing on its zones. Denying on an account
 * includes its zones.
 */
export class PolicySet {
  readonly #grants: readonly Grant[];
  /** Every resource that the policies name. */
  readonly resources: readonly Resource[];

  constructor(policies: readonly Policy[]) {
    const named = policies.map(({ resources }) =>
      Object.entries(resources).flatMap(([name, value]) => resourcesOf(name, value)),
    );
    this.resources = named.flat();
    this.#grants = policies.map((policy, index) => ({
      allow: policy.effect === "allow",
      permissions: new Set(
        policy.permission_groups.flatMap((group) => {
          const key = findPermissionGroup(group.id, group.name)?.key;
          return key === undefined ? [] : [key];
        }),
      ),
      resources: new Map(
        Map.groupBy(named[index]!, ({ kind, id }) => `${kind} ${id}`)
          .entries()
          .map(([key, same]) => [key, new Set(same.map(({ accountId }) => accountId ?? "*"))]),
      ),
    }));
  }

  allows(permission: PermissionKey, target: AccessTarget): boolean {
    const scope = permissionScopes.get(permission)!;
    let isAllowed = false;
    for (const grant of this.#grants) {
      if ((grant.allow && isAllowed) || !grants(grant, permission)) continue;
      if (!(grant.allow ? [scope] : scopes).some((kind) => names(grant, kind, target))) continue;
      if (!grant.allow) return false;
      isAllowed = true;
    }
    return isAllowed;
  }
}

const scopes: readonly PermissionScope[] = ["zone", "account", "user"];

/** The resources that one entry of a policy means; empty if it is not valid. */
export function resourcesOf(name: string, value: "*" | Record<string, "*">): Resource[] {
  const outer = parseResource(name);
  if (outer === undefined) return [];
  if (typeof value === "string") return [outer];
  // "account X": {"zone.*": "*"} means all zones of that account.
  return Object.keys(value).flatMap((inner) => {
    const resource = parseResource(inner);
    return resource === undefined ? [] : [{ ...resource, accountId: outer.id }];
  });
}

function grants(grant: Grant, permission: PermissionKey): boolean {
  if (grant.permissions.has(permission)) return true;
  // Denying "edit" still allows "read". Allowing "edit" allows "read" too.
  return (
    grant.allow &&
    permission.endsWith(":read") &&
    grant.permissions.has(permission.replace(/:read$/, ":edit") as PermissionKey)
  );
}

function names({ resources }: Grant, kind: PermissionScope, target: AccessTarget): boolean {
  const id = { zone: target.zoneId, account: target.accountId, user: target.userId }[kind];
  if (id === undefined) return false;
  return ["*", id].some((each) => {
    const accounts = resources.get(`${kind} ${each}`);
    return accounts !== undefined && (accounts.has("*") || accounts.has(target.accountId ?? "*"));
  });
}

import { isId } from "../util/ids.ts";
import { findPermissionGroup, type PermissionKey } from "./permissions.ts";

/** A policy as the API shows it. */
export interface Policy {
  id: string;
  effect: "allow" | "deny";
  resources: Record<string, "*" | Record<string, "*">>;
  permission_groups: { id: string; name: string }[];
}

/** What a call is about; a zone always comes with its account. */
export interface Target {
  accountId?: string;
  zoneId?: string;
  userId?: string;
}

interface Grant {
  allow: boolean;
  permissions: ReadonlySet<PermissionKey>;
  resources: readonly Resource[];
}
type Resource = { kind: "zone" | "account" | "user"; id: string; accountId?: string };

const zonePrefix = "com.cloudflare.api.account.zone.";
const accountPrefix = "com.cloudflare.api.account.";
const userPrefix = "com.cloudflare.api.user.";

/** Reads a resource name such as "com.cloudflare.api.account.zone.<id>"; undefined when it is none. */
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

/** Policies made ready for checking: deny wins over allow, and edit includes read. */
export class PolicySet {
  readonly #grants: readonly Grant[];

  constructor(policies: readonly Policy[]) {
    this.#grants = policies.map((policy) => ({
      allow: policy.effect === "allow",
      permissions: new Set(
        policy.permission_groups.flatMap((group) => {
          const key = findPermissionGroup(group.id, group.name)?.key;
          return key === undefined ? [] : [key];
        }),
      ),
      resources: Object.entries(policy.resources).flatMap(([name, value]) => resourcesOf(name, value)),
    }));
  }

  allows(permission: PermissionKey, target: Target): boolean {
    const matches = (grant: Grant): boolean =>
      grants(grant, permission) && grant.resources.some((resource) => covers(resource, target));
    return (
      this.#grants.some((grant) => grant.allow && matches(grant)) &&
      !this.#grants.some((grant) => !grant.allow && matches(grant))
    );
  }
}

function resourcesOf(name: string, value: "*" | Record<string, "*">): Resource[] {
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
  // Denying "edit" leaves "read"; allowing "edit" brings it.
  return (
    grant.allow &&
    permission.endsWith(":read") &&
    grant.permissions.has(permission.replace(/:read$/, ":edit") as PermissionKey)
  );
}

function covers(resource: Resource, target: Target): boolean {
  if (
    resource.accountId !== undefined &&
    resource.accountId !== "*" &&
    resource.accountId !== target.accountId
  )
    return false;
  switch (resource.kind) {
    case "zone":
      return target.zoneId !== undefined && (resource.id === "*" || resource.id === target.zoneId);
    case "account":
      return target.accountId !== undefined && (resource.id === "*" || resource.id === target.accountId);
    case "user":
      return target.userId !== undefined && (resource.id === "*" || resource.id === target.userId);
  }
}

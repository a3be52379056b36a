import type { Actor } from "../access/actor.ts";
import { permissionGroups, type PermissionScope } from "../access/permissions.ts";
import type { AccessTarget } from "../access/policies.ts";

/** The permissions of one kind that a caller has on a target. */
export const permissionsOn = (actor: Actor, scope: PermissionScope, target: AccessTarget): string[] =>
  permissionGroups
    .filter((group) => group.scope === scope && actor.can(group.key, target))
    .map(({ key }) => key);

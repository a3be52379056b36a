import { inputErrors } from "../../platform/domain-error.ts";
import type { Actor } from "../access/actor.ts";
import { AddressSet } from "../access/address-set.ts";
import { tokenErrors } from "./errors.ts";
import { permissionGroups, type PermissionKey, type PermissionScope } from "../access/permissions.ts";
import { PolicySet, type Resource, type AccessTarget } from "../access/policies.ts";
import type { ApiToken } from "./tokens.ts";

/** Looks up the resources that policies name. */
export interface PolicyResources {
  accountOfZone: (zoneId: string) => string | undefined;
  isMember: (userId: string, accountId: string) => boolean;
  /**
   * The permissions of the caller's roles in the account that owns the token or membership; undefined for an
   * account token, which has no roles.
   */
  callerPermissions?: ReadonlySet<PermissionKey> | undefined;
}

/**
 * Authority that a call can grant or revoke: that of a token, or of a membership, which equals an account
 * token without conditions.
 */
export type GrantedAuthority = Pick<
  ApiToken,
  "ownerKind" | "ownerId" | "policies" | "condition" | "expiresOn"
>;

/** The authority of a token or member before a call and after it. */
export interface Delegation {
  before?: GrantedAuthority;
  after?: GrantedAuthority;
}

export const addressesOf = ({ condition }: Pick<ApiToken, "condition">): AddressSet =>
  new AddressSet(condition?.request_ip?.in ?? [], condition?.request_ip?.not_in ?? []);

/**
 * Throws if a caller would grant, change or revoke authority that it lacks. This one rule applies to
 * creating, updating, rolling and deleting tokens, and to inviting, changing and removing members. The
 * caller's policies must cover the token's policies before and after the call. Afterwards the token must not
 * work from more addresses or for longer than the caller's token. The caller must be able to reach the
 * resources that new policies name. A user's tokens are limited by that user's roles at each use. Tokens of
 * an account are not, so the caller's roles must cover them. `callerToken` is undefined for a legacy key,
 * which has all policies.
 */
export function refuseDelegation(
  caller: Actor,
  callerToken: ApiToken | undefined,
  { before, after }: Delegation,
  directory: PolicyResources,
): void {
  for (const each of [before, after]) if (each !== undefined) refuseForeign(caller, each);
  if (after !== undefined) refuseUnreachable(caller, after, before, directory);
  const own = callerToken && new PolicySet(callerToken.policies);
  for (const each of [before, after]) if (each !== undefined) refuseExcess(own, each, directory);
  if (callerToken === undefined || after === undefined) return;
  if (callerToken.expiresOn !== null && (after.expiresOn === null || after.expiresOn > callerToken.expiresOn))
    throw tokenErrors.beyondCaller("would be valid for longer than the calling token");
  if (!addressesOf(callerToken).includes(addressesOf(after)))
    throw tokenErrors.beyondCaller("would work from addresses from which the calling token does not");
}

/** Throws if the authority is an account's that the caller does not belong to, or left during this call. */
function refuseForeign(caller: Actor, { ownerKind, ownerId }: GrantedAuthority): void {
  if (ownerKind === "account" && !caller.belongsTo(ownerId))
    throw tokenErrors.beyondCaller(`is in the account ${ownerId}, to which the caller does not belong`);
}

/**
 * Represents every id that neither set of policies names, including future ones: policies treat them all
 * alike.
 */
const anyOther = "other";

/**
 * Compares two sets of policies on every target that they can distinguish: the named ones, and one that
 * represents all others. The comparison is therefore complete, also for accounts and zones created later.
 */
function refuseExcess(own: PolicySet | undefined, given: GrantedAuthority, directory: PolicyResources): void {
  const { callerPermissions } = directory;
  const wanted = new PolicySet(given.policies);
  const named = [...(own?.resources ?? []), ...wanted.resources];
  const zones = named.flatMap(({ kind, id }): AccessTarget[] => {
    const accountId = kind === "zone" ? directory.accountOfZone(id) : undefined;
    return accountId === undefined ? [] : [{ accountId, zoneId: id }];
  });
  const accounts = new Set([anyOther, ...zones.map(({ accountId }) => accountId!)]);
  if (given.ownerKind === "account") accounts.add(given.ownerId);
  for (const { kind, id, accountId } of named) {
    if (kind === "account" && id !== "*") accounts.add(id);
    if (accountId !== undefined && accountId !== "*") accounts.add(accountId);
  }
  const targets: Record<PermissionScope, AccessTarget[]> = {
    zone: [...[...accounts].map((accountId) => ({ accountId, zoneId: anyOther })), ...zones],
    account: [...accounts].map((accountId) => ({ accountId })),
    user: given.ownerKind === "user" ? [{ userId: given.ownerId }] : [],
  };
  const isHeld = (key: PermissionKey, target: AccessTarget): boolean => {
    if (own?.allows(key, target) === false) return false;
    if (given.ownerKind === "user" || target.accountId !== given.ownerId) return true;
    return callerPermissions?.has(key) ?? true;
  };
  for (const { key, name, scope } of permissionGroups) {
    for (const target of targets[scope]) {
      if (wanted.allows(key, target) && !isHeld(key, target))
        throw tokenErrors.beyondCaller(`has "${name}" on ${describe(target)}, which the caller lacks`);
    }
  }
}

function describe({ zoneId, accountId, userId }: AccessTarget): string {
  if (userId !== undefined) return "the user";
  const account = accountId === anyOther ? "every account" : `the account ${accountId}`;
  if (zoneId === undefined) return account;
  return zoneId === anyOther ? `the zones of ${account}` : `the zone ${zoneId}`;
}

/**
 * Throws if a policy names a resource that does not exist or that the caller cannot reach. Resources that the
 * token already named may stay, because clients send back what they read, even if it has since been deleted.
 */
function refuseUnreachable(
  caller: Actor,
  after: GrantedAuthority,
  before: GrantedAuthority | undefined,
  { accountOfZone, isMember }: PolicyResources,
): void {
  const nameOf = ({ kind, id, accountId }: Resource): string => `${kind} ${id} ${accountId}`;
  const known = new Set(new PolicySet(before?.policies ?? []).resources.map(nameOf));
  const reaches = (accountId: string | undefined): boolean =>
    accountId !== undefined &&
    caller.belongsTo(accountId) &&
    (after.ownerKind === "account" ? accountId === after.ownerId : isMember(after.ownerId, accountId));
  const isReachable = (resource: Resource): boolean => {
    const { kind, id, accountId } = resource;
    if (known.has(nameOf(resource))) return true;
    if (accountId !== undefined && accountId !== "*") {
      if (!reaches(accountId)) return false;
      return id === "*" || accountOfZone(id) === accountId;
    }
    if (id === "*") return true;
    if (kind === "user") return after.ownerKind === "user" && id === after.ownerId;
    return reaches(kind === "zone" ? accountOfZone(id) : id);
  };
  for (const [index, policy] of after.policies.entries()) {
    const lost = new PolicySet([policy]).resources.find((resource) => !isReachable(resource));
    if (lost === undefined) continue;
    const { kind, id, accountId } = lost;
    const received = accountId === undefined ? `${kind} ${id}` : `${kind} ${id} of the account ${accountId}`;
    throw inputErrors.invalid(
      `Expected existing resources, within reach of the token and the caller, for policies.${index}.resources but received the ${received}`,
      `/body/policies/${index}/resources`,
    );
  }
}

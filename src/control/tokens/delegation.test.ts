import { fc } from "../../../test/helpers/properties.ts";
import { expect, it } from "vitest";
import { Actor } from "../access/actor.ts";
import { refuseDelegation } from "./delegation.ts";
import { findPermissionGroup, permissionGroups, type PermissionKey } from "../access/permissions.ts";
import type { Policy, AccessTarget } from "../access/policies.ts";
import type { ApiToken } from "./tokens.ts";

const id = (digit: string): string => digit.repeat(32);
const [a, b, later] = [id("a"), id("b"), id("c")];
const accountOf: Record<string, string> = { [id("1")]: a, [id("2")]: a, [id("3")]: b };
/** Zones created after the policies, so that neither set can name them. */
const laterZones: Record<string, string> = { [id("4")]: a, [id("5")]: b, [id("6")]: later };
const user = id("d");

const base = "com.cloudflare.api";
const zoneName = fc
  .constantFrom("*", ...Object.keys(accountOf))
  .map((zone) => `${base}.account.zone.${zone}`);
const accountName = fc.constantFrom("*", a, b).map((account) => `${base}.account.${account}`);
type Entry = [string, "*" | Record<string, "*">];
const resource: fc.Arbitrary<Entry> = fc.oneof(
  zoneName.map((name): Entry => [name, "*"]),
  accountName.map((name): Entry => [name, "*"]),
  fc.tuple(accountName, zoneName).map(([name, zone]): Entry => [name, { [zone]: "*" }]),
  fc.constantFrom("*", user).map((name): Entry => [`${base}.user.${name}`, "*"]),
);
const groupNames = ["DNS Read", "DNS Write", "Queues Read", "Queues Write", "User Details Read"];
const policy: fc.Arbitrary<Policy> = fc.record({
  id: fc.constant("p"),
  effect: fc.constantFrom("allow", "allow", "deny"),
  resources: fc.array(resource, { minLength: 1, maxLength: 2 }).map((all) => Object.fromEntries(all)),
  permission_groups: fc
    .subarray(groupNames, { minLength: 1 })
    .map((names) => names.map((name) => ({ id: findPermissionGroup(undefined, name)!.id, name }))),
});
const policies = fc.array(policy, { minLength: 1, maxLength: 3 });

const token = (of: Policy[], more: Partial<ApiToken> = {}): ApiToken => ({
  id: id("e"),
  ownerKind: "user",
  ownerId: user,
  name: "t",
  status: "active",
  policies: of,
  condition: null,
  secretHash: "",
  notBefore: null,
  expiresOn: null,
  issuedOn: 0,
  modifiedOn: 0,
  lastUsedOn: null,
  ...more,
});

/** A second, simple implementation of policies. */
function allows(of: Policy[], key: PermissionKey, target: AccessTarget): boolean {
  const { scope } = permissionGroups.find((group) => group.key === key)!;
  const matches = (each: Policy): boolean =>
    each.permission_groups.some(({ name }) => {
      const granted = findPermissionGroup(undefined, name)!.key;
      return granted === key || (each.effect === "allow" && granted === key.replace(/:read$/, ":edit"));
    }) &&
    Object.entries(each.resources).some(([name, value]) => {
      const within = typeof value === "string" ? undefined : name.split(".").at(-1)!;
      const names = typeof value === "string" ? [name] : Object.keys(value);
      return names.some((one) => {
        const [, kind, wanted] = /\.(zone|account|user)\.([^.]+)$/.exec(one)!;
        const isOfKind = each.effect === "deny" || kind === scope;
        const actual = { zone: target.zoneId, account: target.accountId, user: target.userId }[kind!];
        const isInAccount = within === undefined || within === "*" || within === target.accountId;
        return isOfKind && actual !== undefined && (wanted === "*" || wanted === actual) && isInAccount;
      });
    });
  return (
    of.some((each) => each.effect === "allow" && matches(each)) &&
    !of.some((each) => each.effect === "deny" && matches(each))
  );
}

const everyTarget = permissionGroups.flatMap(({ key, scope }) => {
  const zones = Object.entries({ ...accountOf, ...laterZones });
  const targets: Record<string, AccessTarget[]> = {
    zone: zones.map(([zoneId, accountId]) => ({ zoneId, accountId })),
    account: [a, b, later].map((accountId) => ({ accountId })),
    user: [{ userId: user }],
  };
  return targets[scope]!.map((target) => ({ key, target }));
});

const directory = { accountOfZone: (zone: string) => accountOf[zone], isMember: () => true };
const caller = new Actor("token", id("f"), user, undefined, { belongsTo: () => true, may: () => true });
const isRefused = (own: ApiToken, change: Parameters<typeof refuseDelegation>[2]): boolean => {
  try {
    refuseDelegation(caller, own, change, directory);
    return false;
  } catch (error) {
    expect(error).toMatchObject({ kind: "tokens.beyondCaller" });
    return true;
  }
};

it("rejects exactly the policies that allow more, now or later, than the caller's", () => {
  const counts = { refused: 0, taken: 0 };
  fc.assert(
    fc.property(policies, policies, fc.boolean(), (own, wanted, isBefore) => {
      const exceeds = everyTarget.some(
        ({ key, target }) => allows(wanted, key, target) && !allows(own, key, target),
      );
      const change = isBefore ? { before: token(wanted) } : { before: token(wanted), after: token(wanted) };
      expect(isRefused(token(own), change)).toBe(exceeds);
      counts[exceeds ? "refused" : "taken"]++;
    }),
    { numRuns: 3000 },
  );
  expect(Math.min(counts.refused, counts.taken)).toBeGreaterThan(100);
});

it("rejects every change of an account's authority by a caller that left the account meanwhile", () => {
  const left = new Actor("token", id("f"), user, undefined, { belongsTo: () => false, may: () => false });
  const of = { ownerKind: "account", ownerId: a } as const;
  const everything: Policy[] = [
    {
      id: "p",
      effect: "allow",
      resources: { [`${base}.account.${a}`]: "*" },
      permission_groups: permissionGroups.map(({ id: group, name }) => ({ id: group, name })),
    },
  ];
  const given = token(everything, of);
  for (const change of [{ before: given }, { after: given }, { before: given, after: given }]) {
    expect(() =>
      refuseDelegation(left, undefined, change, { ...directory, isMember: () => false }),
    ).toThrowError(expect.objectContaining({ kind: "tokens.beyondCaller" }));
  }
});

it("also limits an account's tokens to the roles of their creator", () => {
  const counts = { refused: 0, taken: 0 };
  const keys = permissionGroups.map(({ key }) => key);
  fc.assert(
    fc.property(policies, fc.subarray(keys), fc.boolean(), (wanted, allowed, hasKey) => {
      const held = new Set(allowed);
      const of = { ownerKind: "account", ownerId: a } as const;
      const exceeds = everyTarget.some(
        ({ key, target }) => target.accountId === a && allows(wanted, key, target) && !held.has(key),
      );
      // A legacy key, or a token with the same policies: only the roles can refuse.
      const own = hasKey ? undefined : token(wanted);
      const refusing = { ...directory, callerPermissions: held };
      const change = { before: token(wanted, of), after: token(wanted, of) };
      const refused = (() => {
        try {
          refuseDelegation(caller, own, change, refusing);
          return false;
        } catch (error) {
          if ((error as { kind?: string }).kind !== "tokens.beyondCaller") throw error;
          return true;
        }
      })();
      expect(refused).toBe(exceeds);
      counts[exceeds ? "refused" : "taken"]++;
    }),
    { numRuns: 2000 },
  );
  expect(Math.min(counts.refused, counts.taken)).toBeGreaterThan(100);
});

it("limits a changed token to the addresses and the lifetime of the caller's token", () => {
  const own = token([], { expiresOn: 2000, condition: { request_ip: { in: ["192.0.2.0/24"] } } });
  const within = { expiresOn: 2000, condition: { request_ip: { in: ["192.0.2.0/25", "192.0.2.128/25"] } } };
  expect(isRefused(own, { after: token([], within) })).toBe(false);
  for (const more of [
    { expiresOn: null },
    { expiresOn: 2001 },
    { condition: null },
    { condition: { request_ip: { not_in: ["192.0.2.0/24"] } } },
    { condition: { request_ip: { in: ["192.0.2.0/23"] } } },
  ])
    expect(isRefused(own, { after: token([], { ...within, ...more }) })).toBe(true);
  // A token may have been wider before it is narrowed or deleted.
  expect(isRefused(own, { before: token([]), after: token([], within) })).toBe(false);
  expect(isRefused(own, { before: token([]) })).toBe(false);
});

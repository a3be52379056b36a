import { fc } from "../helpers/properties.ts";
import { roles } from "../../src/control/accounts/roles.ts";

/** The resources of a generated policy. The ids are chosen when the scenario runs. */
export interface PolicyPlan {
  effect: "allow" | "deny";
  kind: "zone" | "account" | "user";
  groups: number;
  resources: number[];
}
export interface TokenPlan {
  owner: number;
  policies: PolicyPlan[];
  addresses: number;
  days: number;
  /** How a token created within another exceeds it; see `widened`. */
  twist: number;
}
export type Command =
  | { kind: "create"; by: number; plan: TokenPlan; isNarrowed: boolean }
  | { kind: "update"; by: number; target: number; plan: TokenPlan; isNarrowed: boolean; status: number }
  | { kind: "roll"; by: number; target: number }
  | { kind: "delete"; by: number; target: number }
  | { kind: "account"; by: number }
  | { kind: "invite"; by: number; account: number; roles: number }
  | { kind: "roles"; by: number; target: number; roles: number }
  | { kind: "remove"; by: number; target: number }
  /** The owner reduces the first caller's user to the minimal role. */
  | { kind: "withdraw"; account: number }
  | { kind: "later account"; choice: number }
  | { kind: "later zone"; choice: number };
export interface Scenario {
  first: TokenPlan;
  /**
   * The kind of the first caller: a token of the owner, of an account or of a member, or everything that a
   * member has.
   */
  as: "owner" | "member" | "whole member";
  /** The member's roles in each account. */
  roles: [number, number];
  /**
   * Further permissions of the first caller, as bits: 1 to edit the user's tokens, 2 and 4 those of an
   * account, 8 and 16 its members.
   */
  edits: number;
  others: TokenPlan[];
  commands: Command[];
}

const number = fc.nat(1000);
const policyPlan: fc.Arbitrary<PolicyPlan> = fc.record({
  effect: fc.constantFrom("allow", "allow", "allow", "allow", "deny"),
  kind: fc.constantFrom("zone", "account", "user"),
  groups: fc.integer({ min: 1, max: 255 }),
  resources: fc.array(number, { minLength: 1, maxLength: 3 }),
});
/** All of a kind except some. */
const exception: fc.Arbitrary<PolicyPlan[]> = policyPlan.map((plan) => [
  { ...plan, effect: "allow", resources: [0] },
  { ...plan, effect: "deny" },
]);
const tokenPlan: fc.Arbitrary<TokenPlan> = fc.record({
  owner: number,
  policies: fc.oneof(
    { weight: 3, arbitrary: fc.array(policyPlan, { minLength: 1, maxLength: 3 }) },
    { weight: 1, arbitrary: exception },
  ),
  addresses: number,
  days: number,
  twist: number,
});
/** Often all permissions or the minimal ones. */
const chosenRole = fc.oneof(fc.constantFrom(0, 0, 1, roles.length - 1), number);
const call: fc.Arbitrary<Command> = fc.oneof(
  fc.record({ kind: fc.constant("create"), by: number, plan: tokenPlan, isNarrowed: fc.boolean() }),
  fc.record({
    kind: fc.constant("update"),
    by: number,
    target: number,
    plan: tokenPlan,
    isNarrowed: fc.boolean(),
    status: number,
  }),
  fc.record({ kind: fc.constantFrom("roll", "roll", "delete"), by: number, target: number }),
  fc.record({ kind: fc.constant("account"), by: number }),
  fc.record({ kind: fc.constant("invite"), by: number, account: number, roles: chosenRole }),
  fc.record({ kind: fc.constant("roles"), by: number, target: number, roles: chosenRole }),
  fc.record({ kind: fc.constant("remove"), by: number, target: number }),
  fc.record({ kind: fc.constantFrom("later account", "later zone"), choice: number }),
);
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 20, arbitrary: call },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("withdraw"), account: number }) },
);
export const scenario: fc.Arbitrary<Scenario> = fc.record({
  first: tokenPlan,
  as: fc.constantFrom("owner", "member", "whole member"),
  roles: fc.tuple(chosenRole, chosenRole),
  edits: fc.integer({ min: 0, max: 31 }),
  others: fc.array(tokenPlan, { maxLength: 3 }),
  commands: fc.array(command, { minLength: 1, maxLength: 12 }),
});

import type { PermissionKey } from "./permissions.ts";
import type { PolicySet, Target } from "./policies.ts";

/** Who makes a call, and what they may do. */
export class Actor {
  readonly kind: "token" | "key";
  /** The token's id, or the user's for a legacy key: what calls are counted by. */
  readonly id: string;
  /** The user behind it; null for a token that an account owns. */
  readonly userId: string | null;
  readonly #policies: PolicySet | undefined;
  readonly #ownerReaches: (accountId: string) => boolean;

  /** `ownerReaches` says which accounts the owner belongs to: a token never reaches further than its owner. */
  constructor(
    kind: "token" | "key",
    id: string,
    userId: string | null,
    policies: PolicySet | undefined,
    ownerReaches: (accountId: string) => boolean,
  ) {
    this.kind = kind;
    this.id = id;
    this.userId = userId;
    this.#policies = policies;
    this.#ownerReaches = ownerReaches;
  }

  can(permission: PermissionKey, target: Target): boolean {
    if (target.accountId !== undefined && !this.#ownerReaches(target.accountId)) return false;
    if (target.userId !== undefined && target.userId !== this.userId) return false;
    return this.#policies === undefined || this.#policies.allows(permission, target);
  }

  /** Whether the credentials belong to that account's people at all, whatever they may do in it. */
  belongsTo(accountId: string): boolean {
    return this.#ownerReaches(accountId);
  }
}

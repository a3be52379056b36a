import type { PermissionKey } from "./permissions.ts";
import type { PolicySet, AccessTarget } from "./policies.ts";

/**
 * The owner of a token: an account, or a user with roles in accounts. A token never has more access than its
 * owner.
 */
export interface ActorOwner {
  belongsTo(accountId: string): boolean;
  may(permission: PermissionKey, accountId: string): boolean;
}

/** The token or key of a caller, for checking its permissions later. */
export type CallerId = Pick<Actor, "kind" | "id">;

/** The authenticated caller of a call, with its permissions. */
export class Actor {
  readonly kind: "token" | "key";
  /** The token's id, or the user's id for a legacy key. Rate limits count by it. */
  readonly id: string;
  /** The user who owns the token; null if an account owns it. */
  readonly userId: string | null;
  /** The name of the token; empty for a legacy key. */
  readonly name: string;
  /** The account or user that owns the token or key. */
  readonly ownerId: string;
  readonly #policies: PolicySet | undefined;
  readonly #owner: ActorOwner;

  constructor(
    kind: "token" | "key",
    id: string,
    userId: string | null,
    policies: PolicySet | undefined,
    owner: ActorOwner,
    { name, ownerId }: Pick<Actor, "name" | "ownerId"> = { name: "", ownerId: userId ?? id },
  ) {
    this.kind = kind;
    this.id = id;
    this.userId = userId;
    this.#policies = policies;
    this.#owner = owner;
    this.name = name;
    this.ownerId = ownerId;
  }

  can(permission: PermissionKey, target: AccessTarget): boolean {
    if (target.accountId !== undefined && !this.#owner.may(permission, target.accountId)) return false;
    if (target.userId !== undefined && target.userId !== this.userId) return false;
    return this.#policies === undefined || this.#policies.allows(permission, target);
  }

  /** Whether the caller is a member of the account or its token, with any permissions or none. */
  belongsTo(accountId: string): boolean {
    return this.#owner.belongsTo(accountId);
  }
}

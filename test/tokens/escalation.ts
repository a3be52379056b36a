import { fc } from "../helpers/properties.ts";
import type { Account } from "../../src/control/accounts/accounts.ts";
import { permissionsOf, roles } from "../../src/control/accounts/roles.ts";
import { permissionGroups, type PermissionKey } from "../../src/control/access/permissions.ts";
import { PolicySet, type AccessTarget } from "../../src/control/access/policies.ts";
import type { ApiToken } from "../../src/control/tokens/tokens.ts";
import { scenario, type Command, type Scenario, type TokenPlan } from "./escalation-plans.ts";
import { pick, TokenBodies, type Body } from "./token-bodies.ts";
import { ownerToken, type ApiResponse, type TestServer } from "../helpers/server.ts";

const sampledAddresses = ["127.0.0.1", "198.51.100.7", "198.51.100.200", "203.0.113.9", "2001:db8::1", "::2"];

interface Known {
  id: string;
  path: string;
  secret: string;
  /** The account or user that owns the token. */
  ownerId: string;
  /**
   * The permissions of its creator's roles, for tokens that outlast these roles, such as those of an account.
   * Undefined for a token of the first caller's user, which the user's current roles limit.
   */
  limit: Limit | undefined;
}
/** Permissions of roles, by account; undefined if no roles apply. */
type Limit = ReadonlyMap<string, ReadonlySet<PermissionKey>> | "none";

interface Person {
  id: string;
  /** A token with all permissions of the user. */
  token: Known;
}

/** Counts of events in the scenarios. A run that never created a token proves nothing. */
export type Outcomes = Record<string, number>;

/**
 * A user with two accounts and their zones, the owner's tokens, other members, and a caller who tries to
 * escalate with calls on tokens, members and roles.
 */
export class EscalationRun {
  readonly #server: TestServer;
  readonly #outcomes: Outcomes;
  readonly #userId: string;
  readonly #accounts: string[] = [];
  readonly #zones: { id: string; accountId: string }[] = [];
  readonly #tokens: Known[] = [];
  /** The tokens of the first caller, including those received since. */
  readonly #obtained: Known[] = [];
  readonly #members: { id: string; account: string }[] = [];
  readonly #invited: string[] = [];
  /** The user whose tokens are generated: the owner or a member. */
  #person: Person | undefined;
  /** That user's memberships. */
  readonly #ofPerson = new Set<string>();
  /** The current permissions of the first caller's user. */
  #limit: Limit = "none";
  readonly #bodies: TokenBodies;

  static async start(server: TestServer, outcomes: Outcomes): Promise<EscalationRun> {
    const run = new EscalationRun(server, outcomes);
    for (const _ of ["A", "B"]) await run.#addAccount();
    for (const accountId of run.#accounts) await run.#addZone(accountId);
    return run;
  }

  private constructor(server: TestServer, outcomes: Outcomes) {
    this.#server = server;
    this.#outcomes = outcomes;
    this.#userId = server.services.accounts.findUserByEmail("owner@selvedge.localhost")!.id;
    this.#bodies = new TokenBodies({
      accounts: this.#accounts,
      zones: this.#zones,
      user: () => this.#user,
    });
  }

  async play({ first, as, roles: chosen, edits, others, commands }: Scenario): Promise<void> {
    for (const [i, account] of this.#accounts.entries()) await this.#join(account, i * 8 + 1);
    if (as !== "owner") await this.#becomeMember(chosen);
    for (const plan of others) await this.#make(plan, undefined);
    const caller =
      as === "whole member" ? this.#person!.token : await this.#make(first, undefined, false, edits);
    if (caller === undefined) return this.#note("no first caller");
    this.#obtained.push(caller);
    const power = await this.#tokenOf(caller);
    if (power!.ownerKind === "account") this.#limit = "none";
    const could = this.#powerOf(power!);
    const fromWhere = new Set<string>();
    for (const address of sampledAddresses)
      if ((await this.#actor(caller.secret, address)) !== undefined) fromWhere.add(address);
    for (const each of commands) await this.#perform(each);
    const targets = this.#targets();
    for (const { secret, id, limit } of this.#obtained) {
      for (const address of sampledAddresses) {
        const found = await this.#actor(secret, address);
        if (found === undefined) continue;
        if (!fromWhere.has(address)) throw new Error(`${id} works from ${address}`);
        if (power!.expiresOn !== null && (found.token.expiresOn ?? Infinity) > power!.expiresOn)
          throw new Error(`${id} is valid for longer`);
        for (const { key, target } of targets) {
          if (found.actor.can(key, target) && !could(key, target, limit ?? this.#limit))
            throw new Error(`${id} has gained ${key} on ${JSON.stringify(target)}`);
        }
      }
    }
  }

  /** Deletes everything that the run created, so that the next run is as fast. */
  async end(): Promise<void> {
    const { zones, accounts } = this.#server.services;
    for (const { id } of this.#zones) {
      const zone = zones.find(id);
      if (zone !== undefined) await zones.delete(zone);
    }
    for (const id of this.#accounts) await accounts.delete(id);
    for (const { path } of this.#tokens) await this.#call(undefined, "DELETE", path);
    if (this.#invited.length === 0) return;
    const { read } = this.#server.services.workflowInstances;
    await read.deleteFrom("api_tokens").where("owner_id", "in", this.#invited).execute();
    await read.deleteFrom("users").where("id", "in", this.#invited).execute();
  }

  async #perform(each: Command): Promise<void> {
    if (each.kind === "later account") return this.#addAccount();
    if (each.kind === "later zone") return this.#addZone(pick(this.#accounts, each.choice));
    if (each.kind === "withdraw") return this.#withdraw(pick(this.#accounts, each.account));
    const by = pick(this.#obtained, each.by);
    if (each.kind === "invite") return this.#invite(by, pick(this.#accounts, each.account), each.roles);
    if (each.kind === "roles" || each.kind === "remove") {
      const member = pick(this.#members, each.target);
      return each.kind === "remove" ? this.#remove(by, member) : this.#setRoles(by, member, each.roles);
    }
    if (each.kind === "account") {
      const name = `by ${this.#accounts.length}`;
      const { body } = await this.#call(by.secret, "POST", "/accounts", { name });
      if (body.success) this.#accounts.push((body.result as Account).id);
      return this.#note(`account ${body.success}`);
    }
    if (each.kind === "create") return void (await this.#make(each.plan, by, each.isNarrowed));
    const target = pick(this.#tokens, each.target);
    if (each.kind === "delete")
      return this.#note(`delete ${(await this.#call(by.secret, "DELETE", target.path)).body.success}`);
    if (each.kind === "roll") {
      const { body } = await this.#call(by.secret, "PUT", `${target.path}/value`, {});
      this.#note(`roll ${body.success}`);
      if (!body.success) return;
      target.secret = body.result as string;
      if (this.#obtained.includes(target)) return;
      target.limit = this.#limitFor(by, target);
      this.#obtained.push(target);
      return;
    }
    const status = pick(["active", "disabled", undefined], each.status);
    const body = { ...(await this.#body(each.plan, each.isNarrowed ? by : undefined)), status };
    const answer = await this.#call(by.secret, "PUT", target.path, body);
    this.#note(`update ${answer.body.success}`);
  }

  /** Creates a token as a caller, who then has it, or as the owner. */
  async #make(
    plan: TokenPlan,
    by: Known | undefined,
    isNarrowed = false,
    edits = 0,
  ): Promise<Known | undefined> {
    const anyAccount = pick([undefined, ...this.#accounts], plan.owner);
    const account = by !== undefined && isNarrowed && plan.owner % 4 > 0 ? accountOf(by) : anyAccount;
    const path = account === undefined ? "/user/tokens" : `/accounts/${account}/tokens`;
    const body = await this.#body(plan, isNarrowed ? by : undefined, by === undefined ? account : undefined);
    body.policies.push(...this.#bodies.managing(edits, account));
    const maker = account === undefined ? this.#person?.token.secret : undefined;
    const answer = await this.#call(by?.secret ?? maker, "POST", path, body);
    if (by !== undefined) this.#note(`create ${answer.body.success}`);
    if (!answer.body.success) return undefined;
    const { id, value } = answer.body.result as { id: string; value: string };
    const ownerId = account ?? by?.ownerId ?? this.#user;
    const made = { id, path: `${path}/${id}`, secret: value, ownerId };
    const token = { ...made, limit: by === undefined ? undefined : this.#limitFor(by, made) };
    this.#tokens.push(token);
    if (by !== undefined) this.#obtained.push(token);
    return token;
  }

  /** The user whose tokens are generated. */
  get #user(): string {
    return this.#person?.id ?? this.#userId;
  }

  /** The limits on a token that a caller obtained through another one. */
  #limitFor(by: Known, token: Pick<Known, "ownerId">): Limit | undefined {
    if (by.limit === undefined && token.ownerId === this.#user) return undefined;
    return by.limit ?? this.#limit;
  }

  async #tokenOf({ ownerId, id }: Known): Promise<ApiToken | undefined> {
    return this.#server.services.tokens.find(ownerId, id);
  }

  /**
   * The first caller's initial permissions, limited by roles, including those on later resources of the
   * owner.
   */
  #powerOf({ policies, ownerKind, ownerId }: ApiToken) {
    const set = new PolicySet(policies);
    return (key: PermissionKey, target: AccessTarget, limit: Limit): boolean => {
      if (!set.allows(key, target)) return false;
      const { accountId, userId } = target;
      if (ownerKind === "account") return accountId === ownerId;
      if (accountId === undefined) return userId === ownerId;
      return limit === "none" ? ownerId === this.#userId : (limit.get(accountId)?.has(key) ?? false);
    };
  }

  /** A new member of an account, invited by the owner. */
  async #join(account: string, choice: number): Promise<Person & { membership: string; roles: string[] }> {
    const chosen = pick(roles, choice);
    const body = { email: this.#newEmail(), roles: [chosen.id] };
    const { result } = (await this.#call(undefined, "POST", `/accounts/${account}/members`, body)).body;
    const person = await this.#redeem((result as Invited).invitation.url, "none");
    this.#members.push({ id: (result as Invited).id, account });
    this.#tokens.push(person.token);
    return { ...person, membership: (result as Invited).id, roles: [chosen.name] };
  }

  /**
   * The first caller's user is a member with a role in each account, and its tokens are the generated ones.
   */
  async #becomeMember([first, second]: Scenario["roles"]): Promise<void> {
    const [a, b] = this.#accounts as [string, string];
    const person = await this.#join(a, first);
    const { token } = person;
    token.limit = undefined;
    const role = pick(roles, second);
    const email = this.#server.services.accounts.findUser(person.id)!.email;
    const invited = await this.#call(undefined, "POST", `/accounts/${b}/members`, {
      email,
      roles: [role.id],
    });
    const { id, invitation } = invited.body.result as Invited;
    const secret = new URL(invitation.url).searchParams.get("secret");
    await this.#call(token.secret, "PUT", `/memberships/${id}`, { status: "accepted", secret });
    this.#members.push({ id, account: b });
    this.#person = { id: person.id, token };
    for (const membership of [person.membership, id]) this.#ofPerson.add(membership);
    this.#limit = new Map([
      [a, permissionsOf(person.roles)],
      [b, permissionsOf([role.name])],
    ]);
  }

  async #invite(by: Known, account: string, choice: number): Promise<void> {
    const role = pick(roles, choice);
    const body = { email: this.#newEmail(), roles: [role.id] };
    const answer = await this.#call(by.secret, "POST", `/accounts/${account}/members`, body);
    this.#note(`invite ${answer.body.success}`);
    if (!answer.body.success) return;
    const { id, invitation } = answer.body.result as Invited;
    this.#members.push({ id, account });
    const { token } = await this.#redeem(invitation.url, by.limit ?? this.#limit);
    this.#obtained.push(token);
  }

  async #redeem(url: string, limit: Limit): Promise<Person> {
    const response = await fetch(url, { method: "POST" });
    const { result } = (await response.json()) as { result: { token: string; user: { id: string } } };
    this.#invited.push(result.user.id);
    const found = (await this.#actor(result.token, "127.0.0.1"))!;
    const { id } = found.token;
    const path = `/user/tokens/${id}`;
    return { id: result.user.id, token: { id, path, secret: result.token, ownerId: result.user.id, limit } };
  }

  async #setRoles(
    by: Known,
    { id, account }: { id: string; account: string },
    choice: number,
  ): Promise<void> {
    const role = pick(roles, choice);
    const path = `/accounts/${account}/members/${id}`;
    const { body } = await this.#call(by.secret, "PUT", path, { roles: [{ id: role.id }] });
    this.#note(`roles ${body.success}`);
    if (!body.success || !this.#isOfPerson(id) || this.#limit === "none") return;
    // An earlier invited member may restore withdrawn permissions, but no more than the first caller had.
    const before = (by.limit ?? this.#limit) as Exclude<Limit, "none">;
    const gained = [...role.permissions].find((key) => before.get(account)?.has(key) !== true);
    if (gained !== undefined) throw new Error(`${by.id} has given ${gained} on ${account}`);
    this.#limit = new Map(this.#limit).set(account, role.permissions);
  }

  async #remove(by: Known, member: { id: string; account: string }): Promise<void> {
    const path = `/accounts/${member.account}/members/${member.id}`;
    const { body } = await this.#call(by.secret, "DELETE", path);
    this.#note(`remove ${body.success}`);
    if (!body.success) return;
    if (this.#limit !== "none" && this.#isOfPerson(member.id)) {
      const limit = new Map(this.#limit);
      limit.delete(member.account);
      this.#limit = limit;
    }
  }

  #isOfPerson(membership: string): boolean {
    return this.#ofPerson.has(membership);
  }

  async #withdraw(account: string): Promise<void> {
    if (this.#limit === "none") return;
    const mine = this.#server.services.accounts
      .membershipsOf(this.#user)
      .find((each) => each.accountId === account);
    if (mine === undefined) return;
    const least = roles.at(-1)!;
    const path = `/accounts/${account}/members/${mine.id}`;
    const { body } = await this.#call(undefined, "PUT", path, { roles: [{ id: least.id }] });
    if (body.success) this.#limit = new Map(this.#limit).set(account, least.permissions);
    this.#note(`withdraw ${body.success}`);
  }

  #newEmail(): string {
    return `p-${this.#accounts[0]!.slice(0, 12)}-${this.#invited.length}-${this.#members.length}@example.com`;
  }

  /** A random token, or one within another. */
  async #body(plan: TokenPlan, within: Known | undefined, account?: string): Promise<Body> {
    const own = within && (await this.#tokenOf(within));
    return own === undefined ? this.#bodies.random(plan, account) : this.#bodies.within(own, plan);
  }

  #targets(): { key: PermissionKey; target: AccessTarget }[] {
    const targets: Record<string, AccessTarget[]> = {
      zone: this.#zones.map(({ id, accountId }) => ({ zoneId: id, accountId })),
      account: this.#accounts.map((accountId) => ({ accountId })),
      user: [{ userId: this.#userId }, { userId: this.#user }],
    };
    return permissionGroups.flatMap(({ key, scope }) => targets[scope]!.map((target) => ({ key, target })));
  }

  async #actor(secret: string, address: string) {
    const found = await this.#server.services.tokens.authenticate(secret, address);
    return typeof found === "string" ? undefined : found;
  }

  async #addAccount(): Promise<void> {
    const input = { name: "later", type: "standard", ownerUserId: this.#userId } as const;
    this.#accounts.push((await this.#server.services.accounts.create(input)).id);
  }

  async #addZone(accountId: string): Promise<void> {
    const name = `z${accountId.slice(0, 12)}-${this.#zones.length}.example`;
    const { id } = await this.#server.services.zones.create({ accountId, name, type: "full" });
    this.#zones.push({ id, accountId });
  }

  /** Uses the owner's credentials if no secret is given. */
  async #call(
    secret: string | undefined,
    method: string,
    path: string,
    body?: unknown,
  ): Promise<ApiResponse> {
    const headers = { authorization: `Bearer ${secret ?? ownerToken}` };
    return this.#server.call(method, path, body, headers);
  }

  #note(what: string): void {
    this.#outcomes[what] = (this.#outcomes[what] ?? 0) + 1;
  }
}

const accountOf = ({ path }: Known): string | undefined => /^\/accounts\/(\w+)/.exec(path)?.[1];

interface Invited {
  id: string;
  invitation: { url: string };
}
/** Runs scenarios until one gains a permission, an address or a lifetime that its first caller lacked. */
export async function tryToEscalate(
  server: TestServer,
  parameters: { numRuns: number; seed: number },
): Promise<Outcomes> {
  const outcomes: Outcomes = {};
  const property = fc.asyncProperty(scenario, async (each) => {
    const run = await EscalationRun.start(server, outcomes);
    try {
      await run.play(each);
    } finally {
      await run.end();
    }
  });
  await fc.assert(property, parameters);
  return outcomes;
}

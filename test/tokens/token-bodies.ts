import type { Policy } from "../../src/control/access/policies.ts";
import type { ApiToken } from "../../src/control/tokens/tokens.ts";
import type { PolicyPlan, TokenPlan } from "./escalation-plans.ts";

const groupsOf = {
  zone: ["DNS Write", "DNS Read", "Zone Write", "Workers Routes Write"],
  account: ["Account API Tokens Write", "Workers Scripts Write", "Account Settings Write", "Queues Read"],
  user: ["API Tokens Write", "Memberships Write", "User Details Read"],
} as const;
/** Conditions on addresses; calls come from 127.0.0.1. */
const conditions = [
  null,
  null,
  { request_ip: { in: ["127.0.0.0/8"] } },
  { request_ip: { in: ["127.0.0.1", "198.51.100.0/25", "198.51.100.128/25"] } },
  { request_ip: { in: ["198.51.100.0/24", "::ffff:127.0.0.0/104"], not_in: ["198.51.100.7"] } },
  { request_ip: { not_in: ["203.0.113.0/24", "2001:db8::/32"] } },
] as const;

export interface PolicyBody {
  effect: "allow" | "deny";
  resources: Policy["resources"];
  permission_groups: object[];
}
/** The body of a call that creates or changes a token. */
export interface Body {
  name: string;
  policies: PolicyBody[];
  condition: unknown;
  expires_on?: string;
}

/** A copy of a body, widened in one point, or unchanged in about half of the cases. */
function widened(body: Body, twist: number): Body {
  const { policies, condition, expires_on, ...rest } = body;
  const wide = (name: string): string => name.replace(/[0-9a-f]{32}$/, "*");
  const expiry = expires_on === undefined ? {} : { expires_on };
  switch (twist % 12) {
    case 0:
      return { ...rest, policies: policies.filter(({ effect }) => effect === "allow"), condition, ...expiry };
    case 1:
      return { ...rest, policies, condition: null, ...expiry };
    case 2:
      return { ...rest, policies, condition };
    case 3:
    case 4: {
      const each = policies.map((policy) => ({
        ...policy,
        resources: Object.fromEntries(
          Object.entries(policy.resources).map(([name, value]) => [wide(name), value]),
        ),
      }));
      return { ...rest, policies: each, condition, ...expiry };
    }
    case 5: {
      const names = policies.flatMap(({ permission_groups }) => permission_groups);
      const each = policies.map((policy) => ({ ...policy, permission_groups: names }));
      return { ...rest, policies: each, condition, ...expiry };
    }
    default:
      return body;
  }
}

/** The things that policies can name. The lists grow while commands run. */
interface Nameable {
  accounts: readonly string[];
  zones: readonly { id: string; accountId: string }[];
  /** The user whose tokens are generated. */
  user: () => string;
}
type Resource = [name: string, value: "*" | Record<string, "*">];

/** Builds the bodies of calls from the numbers of plans. */
export class TokenBodies {
  readonly #nameable: Nameable;

  constructor(nameable: Nameable) {
    this.#nameable = nameable;
  }

  /** A random token. With an account, its policies name only resources that the account's tokens may name. */
  random(plan: TokenPlan, account: string | undefined): Body {
    return {
      name: "random",
      policies: plan.policies.map((each) => this.#policy(each, account)),
      condition: pick(conditions, plan.addresses),
      ...expiry(plan),
    };
  }

  /** A token within another one, with some of its policies and its conditions, which may then be widened. */
  within(own: ApiToken, plan: TokenPlan): Body {
    const denied = own.policies.filter(({ effect }) => effect === "deny");
    const allowed = own.policies.filter(({ effect }) => effect === "allow");
    const some = allowed.filter((_, i) => allowed.length === 1 || (plan.owner + i) % 2 === 0);
    const body = { name: "narrowed", policies: [...denied, ...some], condition: own.condition };
    const until =
      own.expiresOn === null ? expiry(plan) : { expires_on: new Date(own.expiresOn).toISOString() };
    return widened({ ...body, ...until }, plan.twist);
  }

  /** Policies that allow changes of tokens and settings, one for each bit of a number. */
  managing(which: number, account: string | undefined): PolicyBody[] {
    const base = "com.cloudflare.api";
    const { accounts, user } = this.#nameable;
    const policies: [string, string][] = [
      [`${base}.user.${user()}`, "API Tokens Write"],
      [`${base}.account.${accounts[0]}`, "Account API Tokens Write"],
      [`${base}.account.${accounts[1]}`, "Account API Tokens Write"],
      [`${base}.account.${accounts[0]}`, "Account Settings Write"],
      [`${base}.account.${accounts[1]}`, "Account Settings Write"],
    ];
    return policies
      .filter((_, i) => (which & (1 << i)) !== 0)
      .filter(([resource]) => account === undefined || resource.endsWith(account))
      .map(([resource, name]) => ({
        effect: "allow" as const,
        resources: { [resource]: "*" as const },
        permission_groups: [{ name }],
      }));
  }

  #policy({ effect, kind: wanted, groups, resources }: PolicyPlan, account: string | undefined): PolicyBody {
    const kind = account !== undefined && wanted === "user" ? "account" : wanted;
    const names: readonly string[] = groupsOf[kind];
    const chosen = names.filter((_, i) => (groups & (1 << i)) !== 0);
    return {
      effect,
      resources: Object.fromEntries(resources.map((choice) => this.#resource(kind, choice, account))),
      permission_groups: (chosen.length === 0 ? names : chosen).map((name) => ({ name })),
    };
  }

  #resource(kind: PolicyPlan["kind"], choice: number, account: string | undefined): Resource {
    const base = "com.cloudflare.api";
    const { accounts, zones, user } = this.#nameable;
    const rest = Math.floor(choice / 5);
    if (kind === "user") return [`${base}.user.${choice % 5 === 0 ? "*" : user()}`, "*"];
    const accountId = account ?? pick(accounts, rest);
    if (kind === "account") return [`${base}.account.${choice % 5 === 0 ? "*" : accountId}`, "*"];
    if (choice % 5 === 0) return [`${base}.account.zone.*`, "*"];
    if (choice % 5 === 1) return [`${base}.account.${accountId}`, { [`${base}.account.zone.*`]: "*" }];
    const ofAccount = zones.filter((zone) => account === undefined || zone.accountId === account);
    const zone = pick(ofAccount.length === 0 ? zones : ofAccount, rest);
    const name = `${base}.account.zone.${zone.id}`;
    return choice % 5 === 2 ? [`${base}.account.${zone.accountId}`, { [name]: "*" }] : [name, "*"];
  }
}

export const pick = <T>(list: readonly T[], choice: number): T => list[choice % list.length]!;

function expiry({ days: choice }: TokenPlan): { expires_on?: string } {
  const days = pick([undefined, undefined, 1, 2], choice);
  if (days === undefined) return {};
  const now = Math.floor(Date.now() / 1000) * 1000;
  return { expires_on: new Date(now + days * 86_400_000).toISOString() };
}

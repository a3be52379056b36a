import type { Policy } from "../../src/control/tokens/policies.ts";

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
export function widened(body: Body, twist: number): Body {
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

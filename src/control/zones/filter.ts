import type { Accounts } from "../accounts/accounts.ts";
import type { Zone } from "./zone.ts";

export interface ZoneFilter {
  name?: string | undefined;
  status?: string | undefined;
  type?: string | string[] | undefined;
  "account.id"?: string | undefined;
  "account.name"?: string | undefined;
  match: "any" | "all";
}

const operators: Record<string, (value: string, wanted: string) => boolean> = {
  equal: (value, wanted) => value === wanted,
  not_equal: (value, wanted) => value !== wanted,
  starts_with: (value, wanted) => value.startsWith(wanted),
  ends_with: (value, wanted) => value.endsWith(wanted),
  contains: (value, wanted) => value.includes(wanted),
};

/**
 * The predicate for the filters of the zone list. A name may have an operator before a colon, such as
 * "contains:shop".
 */
export function zoneMatcher(filter: ZoneFilter, accounts: Accounts): (zone: Zone) => boolean {
  const tests: ((zone: Zone) => boolean)[] = [];
  const { name, status, type } = filter;
  const accountName = filter["account.name"];
  const accountId = filter["account.id"];
  if (name !== undefined) tests.push(textTest(name, (zone) => zone.name));
  if (status !== undefined) tests.push((zone) => zone.status === status);
  if (type !== undefined)
    tests.push((zone) => (Array.isArray(type) ? type.includes(zone.type) : zone.type === type));
  if (accountId !== undefined) tests.push((zone) => zone.accountId === accountId);
  if (accountName !== undefined)
    tests.push(textTest(accountName, (zone) => accounts.find(zone.accountId)?.name ?? ""));
  if (tests.length === 0) return () => true;
  return filter.match === "any"
    ? (zone) => tests.some((test) => test(zone))
    : (zone) => tests.every((test) => test(zone));
}

function textTest(filter: string, value: (zone: Zone) => string): (zone: Zone) => boolean {
  const [prefix = "", ...rest] = filter.split(":");
  const operator = rest.length > 0 ? operators[prefix.replace(/_case_sensitive$/, "")] : undefined;
  if (operator === undefined) {
    const wanted = filter.toLowerCase();
    return (zone) => value(zone).toLowerCase() === wanted;
  }
  const wanted = rest.join(":");
  if (prefix.endsWith("_case_sensitive")) return (zone) => operator(value(zone), wanted);
  return (zone) => operator(value(zone).toLowerCase(), wanted.toLowerCase());
}

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import permissions from "virtual:permissions";
import { session } from "./session.ts";
import { useStore } from "./store.ts";

/** The subject of a screen: an account, and maybe one of its zones with the permissions on it. */
export interface Scope {
  accountId: string | undefined;
  zone?: { id: string; can: readonly string[] };
}

export const ScopeContext = createContext<Scope>({ accountId: undefined });

const names: Record<string, string> = {
  zone: "Zone",
  dns_records: "DNS",
  zone_settings: "Zone Settings",
  smart_routing: "Smart Routing",
  snippets: "Snippets",
  origin_rules: "Origin Rules",
  ssl_certificates: "SSL and Certificates",
  workers_routes: "Workers Routes",
  logs: "Logs",
  account_settings: "Account Settings",
  account_tokens: "Account API Tokens",
  account_logs: "Account Logs",
  workers_scripts: "Workers Scripts",
  workers_kv: "Workers KV Storage",
  workers_tail: "Workers Tail",
  d1: "D1",
  queues: "Queues",
  images: "Cloudflare Images",
  user_details: "User Details",
  memberships: "Memberships",
  user_tokens: "API Tokens",
};

/** "DNS: Edit" for "dns_records:edit". */
export function permissionName(key: string): string {
  const [area = "", level = ""] = key.split(":");
  const name = names[area] ?? area.replaceAll("_", " ");
  return `${name}: ${level === "read" ? "Read" : "Edit"}`;
}

const allows = (held: readonly string[], key: string): boolean => held.includes(key);

/** Whether the session has a permission in a scope. For a zone whose permissions are unknown, those on all zones count. */
export function isAllowed(key: string | undefined, scope: Scope): boolean {
  const opened = session.get();
  if (key === undefined) return true;
  if (opened == null) return false;
  const account = opened.accounts.find(({ id }) => id === scope.accountId);
  const held = [
    ...opened.can,
    ...(account?.can ?? []),
    ...(scope.zone?.can ?? account?.can_on_all_zones ?? []),
  ];
  return allows(held, key);
}

/** The permission that an operation needs, such as "PATCH /zones/{zone_id}"; undefined if it needs none. */
export const permissionOf = (op: string): string | undefined => permissions[op];

/** A function that gives the reason why an operation is not allowed here, as in "needs DNS: Edit". */
export function useRefusal(): (op: string | undefined) => string | undefined {
  const scope = useContext(ScopeContext);
  useStore(session);
  return (op) => {
    const key = op === undefined ? undefined : permissionOf(op);
    return isAllowed(key, scope) ? undefined : `needs ${permissionName(key!)}`;
  };
}

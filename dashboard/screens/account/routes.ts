import type { Route } from "../../shell/route.ts";

/** Screens of the account itself. */
export const accountRoutes: readonly Route[] = [
  {
    pattern: "/:account/tokens",
    title: "Tokens",
    makes: "Create a token",
    menu: { icon: "tokens", group: "account" },
    keys: "g t",
    load: async () => import("./tokens/tokens.tsx"),
  },
  {
    pattern: "/:account/members",
    title: "Members",
    makes: "Invite a member",
    needs: "account_settings:read",
    menu: { icon: "members", group: "account" },
    keys: "g m",
    load: async () => import("./members/members.tsx"),
  },
  {
    pattern: "/:account/audit",
    title: "Audit log",
    needs: "account_settings:read",
    menu: { icon: "audit", group: "account" },
    keys: "g a",
    load: async () => import("./audit/audit.tsx"),
  },
  {
    pattern: "/:account/trace",
    title: "Trace a request",
    needs: "request_tracer:read",
    load: async () => import("../trace/trace.tsx"),
  },
  {
    pattern: "/:account/api",
    title: "API",
    menu: { icon: "api", group: "account" },
    keys: "g p",
    load: async () => import("./api/api.tsx"),
  },
  {
    pattern: "/:account/settings",
    title: "Settings",
    needs: "account_settings:read",
    menu: { icon: "settings", group: "account" },
    keys: "g e",
    load: async () => import("./settings/settings.tsx"),
  },
];

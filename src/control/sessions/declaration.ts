import { declare, table } from "../../declaration.ts";
import { forms } from "../../platform/config/forms.ts";
import { choice } from "../../platform/config/setting.ts";
import type { DashboardSessionsTable } from "./tables.ts";

/** The console, and its sign-ins. */
export const declaration = declare({
  settings: {
    dashboard: {
      ...choice(["on", "off"]),
      flag: "dashboard",
      env: "SELVEDGE_DASHBOARD",
      default: "on",
      describe: "the console at /dashboard/ of the management API",
    },
    dashboardHosts: {
      kind: "list",
      form: forms.hostName,
      flag: "dashboard-hosts",
      env: "SELVEDGE_DASHBOARD_HOSTS",
      default: [],
      describe:
        "host names under which people open the console, over TLS; localhost and loopback addresses are always allowed",
    },
  },
  tables: {
    dashboard_sessions: table<DashboardSessionsTable>(),
  },
  changes: ["dashboard_session"],
  migrations: {
    "0029-dashboard-sessions": async () =>
      (await import("./migrations/0029-dashboard-sessions.ts")).dashboardSessions,
  },
});

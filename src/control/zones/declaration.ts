import { declare, table } from "../../declaration.ts";
import { forms } from "../../platform/config/forms.ts";
import { planNames } from "../../platform/config/plan-names.ts";
import { choice } from "../../platform/config/setting.ts";
import type { ZonesTable } from "./tables.ts";

/** Zones. */
export const declaration = declare({
  settings: {
    defaultPlan: {
      ...choice(planNames),
      flag: "default-plan",
      env: "SELVEDGE_DEFAULT_PLAN",
      default: "enterprise",
      describe: "plan of new zones; also of the first account, and for the retention of workflow instances",
    },
    nameServers: {
      kind: "list",
      form: forms.hostName,
      flag: "name-servers",
      env: "SELVEDGE_NAME_SERVERS",
      default: ["ns1.selvedge.localhost", "ns2.selvedge.localhost"],
      describe: "names of this installation's name servers, assigned to zones in pairs",
    },
    activation: {
      ...choice(["static", "dns"]),
      flag: "activation",
      env: "SELVEDGE_ACTIVATION",
      describe:
        "how pending zones become active: at once (static), or once the public DNS names this installation's name servers (dns) (default: static while every listener is on loopback, else dns)",
    },
    activationIntervalSeconds: {
      kind: "count",
      min: 0,
      max: 86_400,
      flag: "activation-interval-seconds",
      env: "SELVEDGE_ACTIVATION_INTERVAL_SECONDS",
      default: 300,
      describe: "time between two DNS checks of a pending zone",
    },
    resolvers: {
      kind: "list",
      form: forms.resolver,
      flag: "resolvers",
      env: "SELVEDGE_RESOLVERS",
      default: [],
      describe: "DNS resolvers, each ADDRESS or ADDRESS:PORT (default: the system's)",
    },
  },
  tables: {
    zones: table<ZonesTable>(),
  },
  migrations: {
    "0012-zone-authority": async () => (await import("./migrations/0012-zone-authority.ts")).zoneAuthority,
  },
  changes: ["zone"],
});

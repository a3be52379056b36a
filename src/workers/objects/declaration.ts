import { binding, declare, table } from "../../declaration.ts";
import type { ObjectAlarmsTable, ObjectNamespacesTable, ObjectRestoresTable } from "./tables.ts";
import type { objectNamespaceType } from "./binding-type.ts";

/** Durable Objects. */
export const declaration = declare({
  settings: {
    objectMegabytesMax: {
      kind: "count",
      min: 1,
      max: 1_048_576,
      flag: "object-megabytes-max",
      env: "SELVEDGE_OBJECT_MEGABYTES_MAX",
      default: 10_240,
      describe: "size on disk of one Durable Object with its facets, or of one D1 database",
    },
    objectAccountMegabytesMax: {
      kind: "count",
      min: 1,
      max: 1_000_000_000,
      flag: "object-account-megabytes-max",
      env: "SELVEDGE_OBJECT_ACCOUNT_MEGABYTES_MAX",
      describe:
        "size on disk of all Durable Objects and D1 databases of one account together (default: no limit)",
    },
    objectLeaseSeconds: {
      kind: "count",
      min: 2,
      max: 300,
      flag: "object-lease-seconds",
      env: "SELVEDGE_OBJECT_LEASE_SECONDS",
      default: 10,
      describe:
        "with several nodes, the time without a sign of life after which other nodes take over the Durable Objects and D1 databases of a node",
    },
  },
  tables: {
    object_namespaces: table<ObjectNamespacesTable>(),
    object_alarms: table<ObjectAlarmsTable>(),
    object_restores: table<ObjectRestoresTable>(),
  },
  migrations: {
    "0020-objects": async () => (await import("./migrations/0020-objects.ts")).objects,
    "0023-object-alarms": async () => (await import("./migrations/0023-object-alarms.ts")).objectAlarms,
    "0030-object-restores": async () => (await import("./migrations/0030-object-restores.ts")).objectRestores,
  },
  changes: ["object_namespace"],
  bindings: {
    durable_object_namespace: binding<typeof objectNamespaceType>(),
  },
});

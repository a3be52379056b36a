import { binding, declare, table } from "../../declaration.ts";
import type { ObjectAlarmsTable, ObjectNamespacesTable, ObjectRestoresTable } from "./tables.ts";
import type { objectNamespaceType } from "./binding-type.ts";

/** Durable Objects. */
export const declaration = declare({
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

import { binding, declare, table } from "../../declaration.ts";
import type { ObjectAlarmsTable, ObjectNamespacesTable } from "./tables.ts";
import type { objectNamespaceType } from "./binding-type.ts";

/** Durable Objects. */
export const declaration = declare({
  tables: {
    object_namespaces: table<ObjectNamespacesTable>(),
    object_alarms: table<ObjectAlarmsTable>(),
  },
  migrations: {
    "0020-objects": async () => (await import("./migrations/0020-objects.ts")).objects,
    "0023-object-alarms": async () => (await import("./migrations/0023-object-alarms.ts")).objectAlarms,
  },
  changes: ["object_namespace"],
  bindings: {
    durable_object_namespace: binding<typeof objectNamespaceType>(),
  },
});

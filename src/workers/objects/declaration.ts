import { binding, declare, table } from "../../declaration.ts";
import type { ObjectNamespacesTable } from "./tables.ts";
import type { objectNamespaceType } from "./binding-type.ts";

/** Durable Objects. */
export const declaration = declare({
  tables: {
    object_namespaces: table<ObjectNamespacesTable>(),
  },
  migrations: {
    "0020-objects": async () => (await import("./migrations/0020-objects.ts")).objects,
  },
  changes: ["object_namespace"],
  bindings: {
    durable_object_namespace: binding<typeof objectNamespaceType>(),
  },
});

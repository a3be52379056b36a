import { binding, declare, table } from "../../declaration.ts";
import type { KvNamespacesTable, KvEntriesTable } from "./tables.ts";
import type { kvNamespaceType } from "./binding-type.ts";

/** KV. */
export const declaration = declare({
  tables: {
    kv_namespaces: table<KvNamespacesTable>(),
    kv_entries: table<KvEntriesTable>(),
  },
  bindings: {
    kv_namespace: binding<typeof kvNamespaceType>(),
  },
});

import { declare, table } from "../../declaration.ts";
import type { KvNamespacesTable, KvEntriesTable } from "./tables.ts";

/** KV. */
export const declaration = declare({
  tables: {
    kv_namespaces: table<KvNamespacesTable>(),
    kv_entries: table<KvEntriesTable>(),
  },
});

import { binding, declare, table } from "../../declaration.ts";
import type { D1DatabasesTable } from "./tables.ts";
import type { d1Type } from "./binding-type.ts";

/** D1. */
export const declaration = declare({
  tables: {
    d1_databases: table<D1DatabasesTable>(),
  },
  migrations: {
    "0021-d1": async () => (await import("./migrations/0021-d1.ts")).d1,
  },
  changes: ["d1_database"],
  bindings: {
    d1: binding<typeof d1Type>(),
  },
});

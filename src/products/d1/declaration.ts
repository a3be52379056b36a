import { declare, table } from "../../declaration.ts";
import type { D1DatabasesTable } from "./tables.ts";

/** D1. */
export const declaration = declare({
  tables: {
    d1_databases: table<D1DatabasesTable>(),
  },
  migrations: {
    "0021-d1": async () => (await import("./migrations/0021-d1.ts")).d1,
  },
  changes: ["d1_database"],
});

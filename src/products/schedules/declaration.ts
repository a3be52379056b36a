import { declare, table } from "../../declaration.ts";
import type { SchedulesTable } from "./tables.ts";

/** Schedules of scripts. */
export const declaration = declare({
  tables: {
    schedules: table<SchedulesTable>(),
  },
  changes: ["schedule"],
});

import { declare, table } from "../../declaration.ts";
import type { TailsTable, TailEventsTable } from "./tables.ts";

/** Live logs of scripts. */
export const declaration = declare({
  tables: {
    tails: table<TailsTable>(),
    tail_events: table<TailEventsTable>(),
  },
  migrations: {
    "0019-tail-creators": async () => (await import("./migrations/0019-tail-creators.ts")).tailCreators,
  },
  changes: ["tail"],
});

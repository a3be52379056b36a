import { declare, table } from "../../declaration.ts";
import type { DnssecTable } from "./tables.ts";

/** Signed zones. */
export const declaration = declare({
  tables: {
    dnssec: table<DnssecTable>(),
  },
  changes: ["dnssec"],
});

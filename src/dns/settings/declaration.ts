import { declare, table } from "../../declaration.ts";
import type { DnsSettingsTable } from "./tables.ts";

/** DNS settings of zones. */
export const declaration = declare({
  tables: {
    dns_settings: table<DnsSettingsTable>(),
  },
  changes: ["dns_settings"],
});

import { declare, table } from "../../declaration.ts";
import { choice } from "../../platform/config/setting.ts";
import type { ZoneSettingsTable } from "./tables.ts";

/** Settings of zones. */
export const declaration = declare({
  settings: {
    defaultSsl: {
      ...choice(["off", "flexible", "full", "strict"]),
      flag: "default-ssl",
      env: "SELVEDGE_DEFAULT_SSL",
      describe:
        "value of the setting ssl for zones that have not set it (default: flexible while every listener is on loopback, else full)",
    },
  },
  tables: {
    zone_settings: table<ZoneSettingsTable>(),
  },
  changes: ["zone_setting"],
});

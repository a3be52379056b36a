import { declare, table } from "../../declaration.ts";
import { forms } from "../../platform/config/forms.ts";
import type { BotManagementTable } from "./tables.ts";

/** Information about visitors. */
export const declaration = declare({
  settings: {
    geoCity: {
      kind: "text",
      flag: "geo-city",
      env: "SELVEDGE_GEO_CITY",
      describe: "MMDB file with the locations of IP addresses (default: none)",
    },
    geoAsn: {
      kind: "text",
      flag: "geo-asn",
      env: "SELVEDGE_GEO_ASN",
      describe: "MMDB file with the autonomous systems of IP addresses (default: none)",
    },
    colo: {
      kind: "text",
      form: forms.letters3,
      flag: "colo",
      env: "SELVEDGE_COLO",
      default: "DEV",
      describe: "this node's location code, three letters",
    },
  },
  tables: {
    bot_management: table<BotManagementTable>(),
  },
  changes: ["bot_management"],
});

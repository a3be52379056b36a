import { declare } from "../../declaration.ts";
import { forms } from "../../platform/config/forms.ts";
import { choice } from "../../platform/config/setting.ts";

/** Connections to origins. */
export const declaration = declare({
  settings: {
    privateNetworks: {
      ...choice(["deny", "origins", "all"]),
      flag: "private-networks",
      env: "SELVEDGE_PRIVATE_NETWORKS",
      describe:
        "connections that may go to loopback and private addresses: none (deny), those to origins (origins), or also those of scripts (all) (default: origins while every listener is on loopback, else deny)",
    },
    originCa: {
      kind: "list",
      flag: "origin-ca",
      env: "SELVEDGE_ORIGIN_CA",
      default: [],
      describe:
        "PEM files with authorities to trust for certificates of origins and relays, in addition to those that Node trusts",
    },
    originSourceAddress: {
      kind: "text",
      form: forms.address,
      flag: "origin-source-address",
      env: "SELVEDGE_ORIGIN_SOURCE_ADDRESS",
      describe: "local source address of connections to origins (default: chosen by the system)",
    },
  },
});

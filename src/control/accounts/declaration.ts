import { declare } from "../../declaration.ts";

/** Accounts. */
export const declaration = declare({
  settings: {
    billing: {
      kind: "flag",
      flag: "billing",
      env: "SELVEDGE_BILLING",
      default: true,
      describe: "whether accounts have billing; without it, smart routing cannot be changed",
    },
  },
});

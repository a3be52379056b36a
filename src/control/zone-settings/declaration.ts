import { declare } from "../../declaration.ts";
import { choice } from "../../platform/config/setting.ts";

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
});

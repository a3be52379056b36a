import { declare } from "../../declaration.ts";
import { mebibyte } from "../../platform/bytes.ts";
import { forms } from "../../platform/config/forms.ts";

/** Scripts. */
export const declaration = declare({
  settings: {
    workersDomain: {
      kind: "text",
      form: forms.hostName,
      flag: "workers-domain",
      env: "SELVEDGE_WORKERS_DOMAIN",
      default: "workers.localhost",
      describe: "domain under which each script has its own host, SCRIPT.ACCOUNT.DOMAIN",
    },
    scriptBytesMax: {
      kind: "count",
      min: 1024,
      max: 1024 * mebibyte,
      flag: "script-bytes-max",
      env: "SELVEDGE_SCRIPT_BYTES_MAX",
      default: 64 * mebibyte,
      describe: "largest upload of a script, with all modules",
    },
  },
});

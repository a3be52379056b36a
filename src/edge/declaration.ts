import { declare } from "../declaration.ts";
import { forms } from "../platform/config/forms.ts";
import { choice } from "../platform/config/setting.ts";

/** The edge for visitors. */
export const declaration = declare({
  settings: {
    staleEdge: {
      ...choice(["serve", "refuse"]),
      flag: "stale-edge",
      env: "SELVEDGE_STALE_EDGE",
      default: "serve",
      describe:
        "answer of a node that is further behind: with the configuration that it has (serve), or with 503 until it has caught up (refuse)",
    },
    ruleBodyKilobytes: {
      kind: "count",
      min: 1,
      max: 16_384,
      flag: "rule-body-kilobytes",
      env: "SELVEDGE_RULE_BODY_KILOBYTES",
      default: 1024,
      describe: "length of a request's body that rules can read; the zone's plan may allow less",
    },
    errorDetails: {
      ...choice(["local", "none"]),
      flag: "error-details",
      env: "SELVEDGE_ERROR_DETAILS",
      default: "local",
      describe:
        "which visitors see a script's error and stack trace on the error page: those on this machine, unless trusted proxies are set (local), or none",
    },
    trustedProxies: {
      kind: "list",
      form: forms.network,
      flag: "trusted-proxies",
      env: "SELVEDGE_TRUSTED_PROXIES",
      default: [],
      describe:
        "addresses and networks of proxies in front of the edge whose x-forwarded-for and selvedge-cf headers are trusted",
    },
  },
});

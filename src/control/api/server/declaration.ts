import { declare } from "../../../declaration.ts";
import { mebibyte } from "../../../platform/bytes.ts";

/** The management API. */
export const declaration = declare({
  settings: {
    apiRateLimit: {
      kind: "count",
      min: 0,
      max: 1_000_000_000,
      flag: "api-rate-limit",
      env: "SELVEDGE_API_RATE_LIMIT",
      default: 1200,
      describe:
        "management API calls per user, or per account token, in one window, over all nodes; 0 for no limit",
    },
    apiRateWindowSeconds: {
      kind: "count",
      min: 1,
      max: 86_400,
      flag: "api-rate-window-seconds",
      env: "SELVEDGE_API_RATE_WINDOW_SECONDS",
      default: 300,
      describe: "length of the rate limit's window",
    },
    apiBodyBytesMax: {
      kind: "count",
      min: 1024,
      max: 1024 * mebibyte,
      flag: "api-body-bytes-max",
      env: "SELVEDGE_API_BODY_BYTES_MAX",
      default: mebibyte,
      describe: "largest JSON body of a management API call",
    },
  },
});

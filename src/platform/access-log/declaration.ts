import { declare } from "../../declaration.ts";
import type { Form } from "../config/forms.ts";
import { choice } from "../config/setting.ts";

/** Every field that a log can have. */
export const fieldNames = [
  "BotScore",
  "ClientASN",
  "ClientCountry",
  "ClientIP",
  "ClientRequestHost",
  "ClientRequestMethod",
  "ClientRequestPath",
  "ClientRequestProtocol",
  "ClientRequestReferer",
  "ClientRequestScheme",
  "ClientRequestURI",
  "ClientRequestUserAgent",
  "ClientSSLCipher",
  "ClientSSLProtocol",
  "ClientSrcPort",
  "EdgeColoCode",
  "EdgeEndTimestamp",
  "EdgeResponseBodyBytes",
  "EdgeResponseContentType",
  "EdgeResponseStatus",
  "EdgeStartTimestamp",
  "EdgeTimeToFirstByteMs",
  "OriginIP",
  "OriginResponseDurationMs",
  "OriginResponseStatus",
  "RayID",
  "SpanID",
  "TraceID",
  "WorkerScriptName",
  "WorkerStatus",
  "WorkerSubrequest",
  "WorkerWallTimeUs",
  "ZoneName",
] as const;
/** A field of the access log. */
export type FieldName = (typeof fieldNames)[number];

/** Names of parameters and headers whose values are credentials, or sign a URL, as far as names can tell. */
const secretName =
  /^(?:code|verify)$|(?:^|[^a-z\d])(?:(?:access|api|auth|client|id|refresh|session)?(?:token|secret|key)|auth|authorization|bearer|cookie|credentials?|hmac|jwt|otp|pass|passwd|password|pwd|session(?:id)?|sig|signature)(?:\[.*\]|\])?$/i;
/** The expression is slow for long names, which may be secret. */
const nameLengthMax = 256;
/** Whether a query parameter or a header with this name must not be logged. */
export const isSecretName = (name: string): boolean =>
  name.length > nameLengthMax || secretName.test(name.trim()) || secretHeaders.has(name.toLowerCase());

/** Headers that carry credentials or addresses although their names do not show it. */
const secretHeaders: ReadonlySet<string> = new Set(["awsaccesskeyid", "selvedge-cf", "x-auth-email"]);

/** Credentials never appear in a log. */
const loggedHeader: Form = {
  expected: "a header's name, and none that carries a credential, such as authorization or cookie,",
  accepts: (name) => /^[!#$%&'*+.^`|~\w-]{1,100}$/.test(name) && !isSecretName(name),
};

/** The logs of requests. */
export const declaration = declare({
  settings: {
    accessLog: {
      kind: "text",
      flag: "access-log",
      env: "SELVEDGE_ACCESS_LOG",
      describe:
        "file that gets a line of JSON for each request at the edge, or - for standard output; reopened on SIGHUP (default: no log)",
    },
    accessLogFields: {
      kind: "list",
      form: {
        expected: `one of ${fieldNames.join(", ")};`,
        accepts: (name: string) => (fieldNames as readonly string[]).includes(name),
      },
      flag: "access-log-fields",
      env: "SELVEDGE_ACCESS_LOG_FIELDS",
      default: [],
      describe: "fields of a line, in their order (default: those of docs/observability.md)",
    },
    accessLogRequestHeaders: {
      kind: "list",
      form: loggedHeader,
      flag: "access-log-request-headers",
      env: "SELVEDGE_ACCESS_LOG_REQUEST_HEADERS",
      default: [],
      describe: "headers of requests to log, in the field RequestHeaders",
    },
    accessLogResponseHeaders: {
      kind: "list",
      form: loggedHeader,
      flag: "access-log-response-headers",
      env: "SELVEDGE_ACCESS_LOG_RESPONSE_HEADERS",
      default: [],
      describe: "headers of responses to log, in the field ResponseHeaders",
    },
    accessLogTimestamps: {
      ...choice(["rfc3339", "unix", "unixnano"]),
      flag: "access-log-timestamps",
      env: "SELVEDGE_ACCESS_LOG_TIMESTAMPS",
      default: "rfc3339",
      describe: "format of the times in access logs",
    },
    accessLogOneIn: {
      kind: "count",
      min: 1,
      max: 1_000_000,
      flag: "access-log-one-in",
      env: "SELVEDGE_ACCESS_LOG_ONE_IN",
      default: 1,
      describe: "one request in this many is logged, chosen at random",
    },
    apiAccessLog: {
      kind: "text",
      flag: "api-access-log",
      env: "SELVEDGE_API_ACCESS_LOG",
      describe:
        "file that gets a line of JSON for each call of the management API, or -; never sampled (default: no log)",
    },
  },
});

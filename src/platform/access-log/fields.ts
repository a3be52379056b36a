import { sentHeader, type AccessRecord } from "./access-record.ts";
import type { FieldName } from "./declaration.ts";
import { protocolOf } from "../observability/observation.ts";
import { asciiJson } from "../util/ascii-json.ts";
import { withoutSecrets } from "./redact.ts";

/** A value of a field. */
export type FieldValue = string | number | boolean;

/** How the value of a field is found. */
export interface RequestField {
  /** Undefined if the value is not known for this request. */
  read: (record: AccessRecord) => FieldValue | undefined;
  /** Removes what must not be shown from a text. */
  show?: (text: string) => string;
}
type Read = RequestField["read"];

/** The JSON text of a field, in ASCII; undefined if it is not known for this request. */
type Write = (record: AccessRecord) => string | undefined;

/** Printable ASCII without quotation marks and backslashes, which JSON writes as it is. */
export const isPlain = (text: string): boolean => plain.test(text);
const plain = /^[ !#-[\]-~]*$/;
const jsonOf = (value: FieldValue): string =>
  typeof value !== "string" ? String(value) : plain.test(value) ? `"${value}"` : asciiJson(value);
const whole = (value: number | undefined): number | undefined =>
  value === undefined ? undefined : Math.round(value);
/** A header of the request. */
export const header = (record: AccessRecord, name: string): string | undefined => {
  const value = record.request.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
};
const pathOf = (record: AccessRecord): string => record.view?.path ?? record.request.url ?? "";
const hostOf = (record: AccessRecord): string | undefined => record.view?.host ?? header(record, "host");
const country = (value: unknown): string | undefined =>
  typeof value === "string" ? value.toLowerCase() : undefined;

function withoutQuery(path: string): string {
  const question = path.indexOf("?");
  return question < 0 ? path : path.slice(0, question);
}

/** The status in the log when the visitor left before the head of a response was sent. */
const statusOfLeft = 499;

/** A ray is 16 hexadecimal digits and the location code of the node. */
export const rayLength = 16;

/** Fields, by the names of the public data set `http_requests`, but for those below. */
const reads = {
  BotScore: ({ cf }) => {
    const score = (cf?.["botManagement"] as { score?: unknown } | undefined)?.score;
    return typeof score === "number" ? score : undefined;
  },
  ClientASN: ({ cf }) => (typeof cf?.["asn"] === "number" ? cf["asn"] : undefined),
  ClientCountry: ({ cf }) => country(cf?.["country"]),
  ClientIP: ({ view, peerAddress }) => view?.clientAddress ?? peerAddress,
  ClientRequestHost: hostOf,
  ClientRequestMethod: ({ request }) => request.method,
  ClientRequestPath: pathOf,
  ClientRequestProtocol: ({ request }) => protocolOf(request.httpVersion),
  ClientRequestReferer: (record) => header(record, "referer"),
  ClientRequestScheme: ({ view }) => (view === undefined ? undefined : view.isTls ? "https" : "http"),
  ClientRequestURI: pathOf,
  ClientRequestUserAgent: (record) => header(record, "user-agent"),
  ClientSSLCipher: ({ connection }) => connection?.cipher,
  ClientSSLProtocol: ({ connection }) => connection?.protocol ?? "none",
  ClientSrcPort: ({ connection }) => connection?.port,
  EdgeResponseBodyBytes: ({ response }) => response?.bodyBytes,
  EdgeResponseContentType: ({ response }) =>
    response === undefined ? undefined : sentHeader(response, "content-type"),
  EdgeResponseStatus: ({ response, status }) => {
    if (response === undefined) return status === 0 ? statusOfLeft : status;
    return response.headersSent ? response.statusCode : statusOfLeft;
  },
  EdgeTimeToFirstByteMs: ({ response, startMs }) =>
    response?.headAtMs === undefined || response.headAtMs === 0
      ? undefined
      : whole(response.headAtMs - startMs),
  OriginIP: ({ originAddress }) => originAddress,
  OriginResponseDurationMs: ({ originMs }) => whole(originMs),
  OriginResponseStatus: ({ originStatus }) => originStatus,
  RayID: ({ ray }) => ray?.slice(0, rayLength),
  SpanID: ({ span }) => span?.spanId,
  TraceID: ({ span }) => span?.traceId,
  WorkerScriptName: ({ scriptName }) => scriptName,
  WorkerStatus: ({ scriptStatus }) => scriptStatus,
  WorkerSubrequest: ({ view }) => (view === undefined ? undefined : view.via !== undefined),
  WorkerWallTimeUs: ({ scriptMs }) => (scriptMs === undefined ? undefined : whole(scriptMs * 1000)),
  ZoneName: ({ view }) => view?.zone?.name,
} as const satisfies Record<Exclude<FieldName, TimeOrPlace>, Read>;

/** The parts of a record that only a log knows how to write: its times, and the location. */
export type TimeOrPlace = "EdgeStartTimestamp" | "EdgeEndTimestamp" | "EdgeColoCode";

const shows: Partial<Record<FieldName, (text: string) => string>> = {
  ClientRequestPath: (path) => withoutSecrets(withoutQuery(path)),
  ClientRequestReferer: withoutSecrets,
  ClientRequestURI: withoutSecrets,
};

/** The fields, but for times and the location. */
export const fields = Object.fromEntries(
  Object.entries(reads).map(([name, read]): [string, RequestField] => {
    const show = shows[name as FieldName];
    return [name, show === undefined ? { read } : { read, show }];
  }),
) as Readonly<Record<Exclude<FieldName, TimeOrPlace>, RequestField>>;

/** The fields that need the properties of `request.cf`. */
export const fieldsOfCf: ReadonlySet<FieldName> = new Set(["BotScore", "ClientASN", "ClientCountry"]);

/** The fields that need properties of the connection. */
export const fieldsOfConnection: ReadonlySet<FieldName> = new Set([
  "ClientSSLCipher",
  "ClientSSLProtocol",
  "ClientSrcPort",
]);

/** The fields of a log when the setting names none. */
export const defaultFields: readonly FieldName[] = [
  "EdgeStartTimestamp",
  "RayID",
  "ClientIP",
  "ClientRequestMethod",
  "ClientRequestScheme",
  "ClientRequestHost",
  "ClientRequestURI",
  "ClientRequestProtocol",
  "ClientRequestReferer",
  "ClientRequestUserAgent",
  "EdgeResponseStatus",
  "EdgeResponseBodyBytes",
  "EdgeTimeToFirstByteMs",
  "EdgeEndTimestamp",
  "OriginIP",
  "OriginResponseStatus",
  "OriginResponseDurationMs",
  "WorkerScriptName",
  "WorkerStatus",
  "ZoneName",
  "TraceID",
  "SpanID",
];

/** Functions that write the fields as JSON. `timestamp` writes a moment in milliseconds of `performance.now()`. */
export function writersOf(
  timestamp: (ms: number) => string,
  colo: string,
): Readonly<Record<FieldName, Write>> {
  const texts = Object.entries(fields).map(([name, { read, show }]): [string, Write] => [
    name,
    (record) => {
      const value = read(record);
      if (value === undefined) return undefined;
      return jsonOf(typeof value === "string" && show !== undefined ? show(value) : value);
    },
  ]);
  const own: Record<TimeOrPlace, Write> = {
    EdgeStartTimestamp: ({ startMs }) => timestamp(startMs),
    EdgeEndTimestamp: ({ endMs }) => timestamp(endMs),
    EdgeColoCode: () => asciiJson(colo),
  };
  return { ...Object.fromEntries(texts), ...own } as Record<FieldName, Write>;
}

import { sentHeader, type AccessRecord } from "./access-record.ts";
import type { FieldName } from "./declaration.ts";
import { withoutSecrets } from "./redact.ts";

/** The JSON text of a field; undefined if it is not known for this request. */
type Write = (record: AccessRecord) => string | undefined;

/** Printable ASCII without quotation marks and backslashes, which JSON writes as it is. */
const plain = /^[ !#-[\]-~]*$/;
const text = (value: string | undefined): string | undefined =>
  value === undefined ? undefined : plain.test(value) ? `"${value}"` : JSON.stringify(value);
const whole = (value: number | undefined): string | undefined =>
  value === undefined ? undefined : String(Math.round(value));
const header = (record: AccessRecord, name: string): string | undefined => {
  const value = record.request.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
};
const pathOf = (record: AccessRecord): string => record.view?.path ?? record.request.url ?? "";
const hostOf = (record: AccessRecord): string | undefined => record.view?.host ?? header(record, "host");
const protocol = (version: string): string =>
  version === "1.1" ? '"HTTP/1.1"' : version === "2.0" ? '"HTTP/2"' : `"HTTP/${version}"`;
const withoutQuery = (path: string): string => path.split("?", 1)[0]!;
const country = (value: unknown): string | undefined =>
  typeof value === "string" ? value.toLowerCase() : undefined;

/** A ray is 16 hexadecimal digits and the location code of the node. */
const rayLength = 16;

/** The status in the log when the visitor left before the head of a response was sent. */
const statusOfLeft = 499;

/** How to write a moment, given in milliseconds of `performance.now()`. */
export type Timestamp = (ms: number) => string;

/** Nanoseconds exceed the exact integers of a double, so they are written as microseconds and three zeros. */
export const timestamps = {
  unixnano: (ms) => {
    const micro = Math.round((performance.timeOrigin + ms) * 1000);
    return `${micro}000`;
  },
  unix: (ms) => String(Math.floor((performance.timeOrigin + ms) / 1000)),
  rfc3339: rfc3339(),
} as const satisfies Record<string, Timestamp>;

/** Caches the text of the last second, which most requests share. */
function rfc3339(): Timestamp {
  let second = 0;
  let prefix = "";
  return (ms) => {
    const atMs = Math.floor(performance.timeOrigin + ms);
    const rest = atMs % 1000;
    if (atMs - rest !== second || prefix === "") {
      second = atMs - rest;
      prefix = `"${new Date(second).toISOString().slice(0, -4)}`;
    }
    return `${prefix}${rest < 10 ? "00" : rest < 100 ? "0" : ""}${rest}Z"`;
  };
}

/** The fields, by the names of the public data set `http_requests`. */
const fieldWriters = {
  BotScore: ({ cf }) => {
    const score = (cf?.["botManagement"] as { score?: unknown } | undefined)?.score;
    return typeof score === "number" ? String(score) : undefined;
  },
  ClientASN: ({ cf }) => (typeof cf?.["asn"] === "number" ? String(cf["asn"]) : undefined),
  ClientCountry: ({ cf }) => text(country(cf?.["country"])),
  ClientIP: ({ view, request }) => text(view?.clientAddress ?? request.socket.remoteAddress),
  ClientRequestHost: (record) => text(hostOf(record)),
  ClientRequestMethod: ({ request }) => `"${request.method}"`, // the parser knows a list of methods
  ClientRequestPath: (record) => text(withoutQuery(pathOf(record))),
  ClientRequestProtocol: ({ request }) => protocol(request.httpVersion),
  ClientRequestReferer: (record) => {
    const referer = header(record, "referer");
    return referer === undefined ? undefined : text(withoutSecrets(referer));
  },
  ClientRequestScheme: ({ view }) => (view === undefined ? undefined : view.isTls ? '"https"' : '"http"'),
  ClientRequestURI: (record) => text(withoutSecrets(pathOf(record))),
  ClientRequestUserAgent: (record) => text(header(record, "user-agent")),
  ClientSSLCipher: ({ connection }) => text(connection?.cipher),
  ClientSSLProtocol: ({ connection }) => text(connection?.protocol ?? "none"),
  ClientSrcPort: ({ connection }) => whole(connection?.port),
  EdgeResponseBodyBytes: ({ response }) => whole(response?.bodyBytes),
  EdgeResponseContentType: ({ response }) => {
    return response === undefined ? undefined : text(sentHeader(response, "content-type"));
  },
  EdgeResponseStatus: ({ response, status }) =>
    response === undefined
      ? String(status === 0 ? statusOfLeft : status)
      : String(response.headersSent ? response.statusCode : statusOfLeft),
  EdgeTimeToFirstByteMs: ({ response, startMs }) =>
    response?.headAtMs === undefined || response.headAtMs === 0
      ? undefined
      : whole(response.headAtMs - startMs),
  OriginIP: ({ originAddress }) => text(originAddress),
  OriginResponseDurationMs: ({ originMs }) => whole(originMs),
  OriginResponseStatus: ({ originStatus }) => whole(originStatus),
  RayID: ({ ray }) => (ray === undefined ? undefined : `"${ray.slice(0, rayLength)}"`),
  SpanID: ({ span }) => (span === undefined ? undefined : `"${span.spanId}"`),
  TraceID: ({ span }) => (span === undefined ? undefined : `"${span.traceId}"`),
  WorkerScriptName: ({ scriptName }) => text(scriptName),
  WorkerStatus: ({ scriptStatus }) => text(scriptStatus),
  WorkerSubrequest: ({ view }) => (view === undefined ? undefined : String(view.via !== undefined)),
  WorkerWallTimeUs: ({ scriptMs }) => (scriptMs === undefined ? undefined : whole(scriptMs * 1000)),
  ZoneName: ({ view }) => text(view?.zone?.name),
} as const satisfies Record<
  Exclude<FieldName, "EdgeStartTimestamp" | "EdgeEndTimestamp" | "EdgeColoCode">,
  Write
>;

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

/** How lines are written. */
export interface LineFormat {
  fields: readonly FieldName[];
  requestHeaders: readonly string[];
  responseHeaders: readonly string[];
  timestamp: Timestamp;
  colo: string;
}

/** The functions that write each field. */
export const writersOf = ({
  timestamp,
  colo,
}: Pick<LineFormat, "timestamp" | "colo">): Readonly<Record<FieldName, Write>> => ({
  ...fieldWriters,
  EdgeStartTimestamp: ({ startMs }) => timestamp(startMs),
  EdgeEndTimestamp: ({ endMs }) => timestamp(endMs),
  EdgeColoCode: () => JSON.stringify(colo),
});

/** Returns a function that writes a record as one line of JSON and leaves out unknown fields. */
export function lineFormatter(format: LineFormat): (record: AccessRecord) => string {
  const writers = writersOf(format);
  const fields: { prefix: string; write: Write }[] = format.fields.map((name) => ({
    prefix: `,${JSON.stringify(name)}:`,
    write: writers[name],
  }));
  if (format.requestHeaders.length > 0)
    fields.push({
      prefix: ',"RequestHeaders":',
      write: (record) => headersText(format.requestHeaders, (name) => header(record, name)),
    });
  if (format.responseHeaders.length > 0)
    fields.push({
      prefix: ',"ResponseHeaders":',
      write: ({ response }) =>
        response === undefined
          ? undefined
          : headersText(format.responseHeaders, (name) => sentHeader(response, name)),
    });
  return (record) => {
    let line = "";
    for (const { prefix, write } of fields) {
      const value = write(record);
      if (value !== undefined) line += prefix + value;
    }
    return `{${line.slice(1)}}\n`;
  };
}

function headersText(names: readonly string[], valueOf: (name: string) => string | undefined): string {
  const found: Record<string, string> = {};
  for (const name of names) {
    const value = valueOf(name);
    if (value !== undefined) found[name] = value;
  }
  return JSON.stringify(found);
}

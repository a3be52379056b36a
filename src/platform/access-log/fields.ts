import { sentHeader, type AccessRecord } from "./access-record.ts";
import type { FieldName } from "./declaration.ts";
import { asciiJson } from "../util/ascii-json.ts";
import { withoutSecrets } from "./redact.ts";

/** The JSON text of a field, in ASCII; undefined if it is not known for this request. */
type Write = (record: AccessRecord) => string | undefined;

type Value = string | number | boolean | undefined;
/** The value of a field. */
type Read = (record: AccessRecord) => Value;

/** Printable ASCII without quotation marks and backslashes, which JSON writes as it is. */
const plain = /^[ !#-[\]-~]*$/;
const jsonOf = (value: string | number | boolean): string =>
  typeof value !== "string" ? String(value) : plain.test(value) ? `"${value}"` : asciiJson(value);
const whole = (value: number | undefined): number | undefined =>
  value === undefined ? undefined : Math.round(value);
const header = (record: AccessRecord, name: string): string | undefined => {
  const value = record.request.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
};
const pathOf = (record: AccessRecord): string => record.view?.path ?? record.request.url ?? "";
const hostOf = (record: AccessRecord): string | undefined => record.view?.host ?? header(record, "host");
const protocol = (version: string): string =>
  version === "1.1" ? "HTTP/1.1" : version === "2.0" ? "HTTP/2" : `HTTP/${version}`;
const country = (value: unknown): string | undefined =>
  typeof value === "string" ? value.toLowerCase() : undefined;

function withoutQuery(path: string): string {
  const question = path.indexOf("?");
  return question < 0 ? path : path.slice(0, question);
}

/** A ray is 16 hexadecimal digits and the location code of the node. */
const rayLength = 16;

/** The status in the log when the visitor left before the head of a response was sent. */
const statusOfLeft = 499;

/** How to write a moment, given in milliseconds of `performance.now()`. */
export type Timestamp = (ms: number) => string;

const { timeOrigin } = performance;

/** Nanoseconds exceed the exact integers of a double, so they are written as microseconds and three zeros. */
export const timestamps = {
  unixnano: (ms) => {
    const micro = Math.round((timeOrigin + ms) * 1000);
    return `${micro}000`;
  },
  unix: (ms) => String(Math.floor((timeOrigin + ms) / 1000)),
  rfc3339: rfc3339(),
} as const satisfies Record<string, Timestamp>;

/** Caches the text of the last second, which most requests share. */
function rfc3339(): Timestamp {
  const ends = Array.from({ length: 1000 }, (_, rest) => `${String(rest).padStart(3, "0")}Z"`);
  let second = 0;
  let prefix = "";
  return (ms) => {
    const atMs = Math.floor(timeOrigin + ms);
    const rest = atMs % 1000;
    if (atMs - rest !== second || prefix === "") {
      second = atMs - rest;
      prefix = `"${new Date(second).toISOString().slice(0, -4)}`;
    }
    return prefix + ends[rest]!;
  };
}

/** Fields, by the names of the public data set `http_requests`, that many requests share with the one before. */
const sharedFields = {
  BotScore: ({ cf }) => {
    const score = (cf?.["botManagement"] as { score?: unknown } | undefined)?.score;
    return typeof score === "number" ? score : undefined;
  },
  ClientASN: ({ cf }) => (typeof cf?.["asn"] === "number" ? cf["asn"] : undefined),
  ClientCountry: ({ cf }) => country(cf?.["country"]),
  ClientIP: ({ view, request }) => view?.clientAddress ?? request.socket.remoteAddress,
  ClientRequestHost: (record) => hostOf(record),
  ClientRequestMethod: ({ request }) => request.method,
  ClientRequestPath: (record) => withoutSecrets(withoutQuery(pathOf(record))),
  ClientRequestProtocol: ({ request }) => protocol(request.httpVersion),
  ClientRequestReferer: (record) => {
    const referer = header(record, "referer");
    return referer === undefined ? undefined : withoutSecrets(referer);
  },
  ClientRequestScheme: ({ view }) => (view === undefined ? undefined : view.isTls ? "https" : "http"),
  ClientRequestURI: (record) => withoutSecrets(pathOf(record)),
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
  WorkerScriptName: ({ scriptName }) => scriptName,
  WorkerStatus: ({ scriptStatus }) => scriptStatus,
  WorkerSubrequest: ({ view }) => (view === undefined ? undefined : view.via !== undefined),
  WorkerWallTimeUs: ({ scriptMs }) => (scriptMs === undefined ? undefined : whole(scriptMs * 1000)),
  ZoneName: ({ view }) => view?.zone?.name,
} as const satisfies Partial<Record<FieldName, Read>>;

/** Fields that differ for each request, or need no look at their values. */
const ownFields = {
  RayID: ({ ray }) => (ray === undefined ? undefined : `"${ray.slice(0, rayLength)}"`),
  SpanID: ({ span }) => (span === undefined ? undefined : `"${span.spanId}"`),
  TraceID: ({ span }) => (span === undefined ? undefined : `"${span.traceId}"`),
} as const satisfies Record<
  Exclude<FieldName, keyof typeof sharedFields | "EdgeStartTimestamp" | "EdgeEndTimestamp" | "EdgeColoCode">,
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

/** Returns a function that writes a field with a prefix, and keeps the text of the last value. */
function sharedWriter(read: Read, prefix: string): Write {
  let last: Value;
  let text: string | undefined;
  return (record) => {
    const value = read(record);
    if (value !== last) {
      text = value === undefined ? undefined : prefix + jsonOf(value);
      last = value;
    }
    return text;
  };
}

const withPrefix =
  (write: Write, prefix: string): Write =>
  (record) => {
    const value = write(record);
    return value === undefined ? undefined : prefix + value;
  };

/** The functions that write each field. `prefixOf` returns a text before the value. */
export function writersOf(
  { timestamp, colo }: Pick<LineFormat, "timestamp" | "colo">,
  prefixOf: (name: FieldName) => string = () => "",
): Readonly<Record<FieldName, Write>> {
  const own: Partial<Record<FieldName, Write>> = {
    ...ownFields,
    EdgeStartTimestamp: ({ startMs }) => timestamp(startMs),
    EdgeEndTimestamp: ({ endMs }) => timestamp(endMs),
    EdgeColoCode: () => asciiJson(colo),
  };
  const writers: [string, Write][] = [
    ...Object.entries(sharedFields).map(([name, read]): [string, Write] => [
      name,
      sharedWriter(read, prefixOf(name as FieldName)),
    ]),
    ...Object.entries(own).map(([name, write]): [string, Write] => [
      name,
      withPrefix(write, prefixOf(name as FieldName)),
    ]),
  ];
  return Object.fromEntries(writers) as Record<FieldName, Write>;
}

/** Returns a function that writes a record as one line of JSON, in ASCII, and leaves out unknown fields. */
export function lineFormatter(format: LineFormat): (record: AccessRecord) => string {
  const writers = writersOf(format, (name) => `,${JSON.stringify(name)}:`);
  const fields = format.fields.map((name) => writers[name]);
  if (format.requestHeaders.length > 0)
    fields.push(
      (record) => ',"RequestHeaders":' + headersText(format.requestHeaders, (name) => header(record, name)),
    );
  if (format.responseHeaders.length > 0)
    fields.push(
      ({ response }) =>
        response &&
        ',"ResponseHeaders":' + headersText(format.responseHeaders, (name) => sentHeader(response, name)),
    );
  return (record) => {
    let line = "{";
    for (const write of fields) {
      const text = write(record);
      // Without the comma of the first field: cutting it from the whole line would copy the line.
      if (text !== undefined) line += line.length === 1 ? text.slice(1) : text;
    }
    return line + "}\n";
  };
}

function headersText(names: readonly string[], valueOf: (name: string) => string | undefined): string {
  const found: Record<string, string> = {};
  for (const name of names) {
    const value = valueOf(name);
    if (value !== undefined) found[name] = value;
  }
  return asciiJson(found);
}

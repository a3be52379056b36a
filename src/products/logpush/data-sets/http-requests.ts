import type { AccessRecord } from "../../../platform/access-log/access-record.ts";
import { fieldNames, type FieldName } from "../../../platform/access-log/declaration.ts";
import { writersOf } from "../../../platform/access-log/fields.ts";
import { writeTime, type DataSet } from "./data-set.ts";

const descriptions: Readonly<Record<FieldName, string>> = {
  BotScore: "Score of the visitor, from 1 (a program) to 99 (a person); int",
  ClientASN: "Number of the visitor's network; int",
  ClientCountry: "Country of the visitor's address, two letters; string",
  ClientIP: "Address of the visitor; string",
  ClientRequestHost: "Host of the request; string",
  ClientRequestMethod: "Method of the request; string",
  ClientRequestPath: "Path of the request, without its query; string",
  ClientRequestProtocol: "HTTP version of the request; string",
  ClientRequestReferer: "Referer of the request, without credentials; string",
  ClientRequestScheme: "http or https; string",
  ClientRequestURI: "Path and query of the request, without credentials; string",
  ClientRequestUserAgent: "User agent of the visitor; string",
  ClientSSLCipher: "TLS cipher of the visitor's connection; string",
  ClientSSLProtocol: "TLS version of the visitor's connection, or none; string",
  ClientSrcPort: "Port of the visitor; int",
  EdgeColoCode: "Location code of the node; string",
  EdgeEndTimestamp: "When the response was sent; int or string",
  EdgeResponseBodyBytes: "Bytes of the response's body; int",
  EdgeResponseContentType: "Content type of the response; string",
  EdgeResponseStatus: "Status of the response; int",
  EdgeStartTimestamp: "When the request was received; int or string",
  EdgeTimeToFirstByteMs: "Time until the head of the response was sent; int",
  OriginIP: "Address of the origin; string",
  OriginResponseDurationMs: "Time until the origin's head was received; int",
  OriginResponseStatus: "Status of the origin's response; int",
  RayID: "Id of the request; string",
  SpanID: "Span of the request, with traces; string",
  TraceID: "Trace of the request, with traces; string",
  WorkerScriptName: "Script that the request's route names; string",
  WorkerStatus: "How the script's run ended; string",
  WorkerSubrequest: "Whether a script sent the request; bool",
  WorkerWallTimeUs: "Time from the start of the script to the end of the response; int",
  ZoneName: "Name of the zone; string",
};

/** The requests of a zone, with the fields of the access log. */
export const httpRequests = (colo: string): DataSet<AccessRecord> => ({
  scope: "zone",
  descriptions,
  writers: (format) => writersOf((ms) => writeTime[format](performance.timeOrigin + ms), colo),
});

export const isRequestField = (name: string): name is FieldName =>
  (fieldNames as readonly string[]).includes(name);

import { spanKinds, type AttributeValue, type Span } from "./spans/span.ts";

/*
 * The JSON mapping of OTLP's ExportTraceServiceRequest: ids are hexadecimal, 64-bit integers are text, enumerations are
 * numbers.
 */

const failed = 2;
/** The flag of a sampled trace. */
const sampled = 1;

const textOf = (text: string): string => JSON.stringify(text.toWellFormed());

function valueOf(value: AttributeValue): string {
  if (typeof value === "string") return `{"stringValue":${textOf(value)}}`;
  if (typeof value === "boolean") return `{"boolValue":${value}}`;
  return Number.isSafeInteger(value) ? `{"intValue":"${value}"}` : `{"doubleValue":${value}}`;
}

/** Names and values in turn, as a list of KeyValue. */
export function attributesOf(attributes: readonly AttributeValue[]): string {
  let list = "";
  for (let i = 0; i < attributes.length; i += 2) {
    const separator = i === 0 ? "" : ",";
    list += `${separator}{"key":"${String(attributes[i])}","value":${valueOf(attributes[i + 1]!)}}`;
  }
  return `[${list}]`;
}

/** Nanoseconds exceed the integers of a double, so they are written digit by digit. */
const nanoseconds = (wallMs: number): string => `"${Math.round(wallMs * 1000)}000"`;

/** `originMs` is the wall time of 0 on the clock of `performance.now()`. */
export function spanJson(span: Span, originMs: number): string {
  const { traceId, spanId, parentId, state, name, kind, link, error } = span;
  let json = `{"traceId":"${traceId}","spanId":"${spanId}",`;
  if (parentId !== undefined) json += `"parentSpanId":"${parentId}",`;
  if (state !== undefined) json += `"traceState":${JSON.stringify(state)},`;
  json += `"name":${textOf(name)},"kind":${spanKinds[kind]},"flags":${sampled}`;
  json += `,"startTimeUnixNano":${nanoseconds(originMs + span.startMs)}`;
  json += `,"endTimeUnixNano":${nanoseconds(originMs + span.endMs)}`;
  if (error !== undefined) span.attributes.push("error.type", error);
  json += `,"attributes":${attributesOf(span.attributes)}`;
  if (link !== undefined)
    json += `,"links":[{"traceId":"${link.traceId}","spanId":"${link.spanId}","flags":${Number(link.isSampled)}}]`;
  if (error !== undefined) json += `,"status":{"code":${failed}}`;
  return `${json}}`;
}

/** A request for the collector. `resource` is the JSON of the attributes of this process. */
export const requestJson = (resource: string, version: string, spans: readonly string[]): string =>
  `{"resourceSpans":[{"resource":{"attributes":${resource}},"scopeSpans":[{"scope":{"name":"selvedge","version":${JSON.stringify(version)}},"spans":[${spans.join(",")}]}]}]}`;

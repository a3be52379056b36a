import { attributeJson, innerJson } from "./spans/attribute-json.ts";
import { asciiJson } from "../util/ascii-json.ts";
import { spanKinds, type KeptSpan } from "./spans/span.ts";

/*
 * The JSON mapping of OTLP's ExportTraceServiceRequest: ids are hexadecimal, 64-bit integers are text, enumerations are
 * numbers. All of it is ASCII.
 */

const failed = 2;
/** The flag of a sampled trace. */
const sampled = 1;

/** Names and values, as a list of KeyValue. */
export const attributesOf = (attributes: Iterable<readonly [name: string, value: string]>): string =>
  `[${[...attributes]
    .map(([name, value]) => attributeJson(name, value))
    .join("")
    .slice(1)}]`;

/** "000" to "999", because a look-up is cheaper than formatting. */
const threeDigits = Array.from({ length: 1000 }, (_, i) => String(i).padStart(3, "0"));
let second = 0;
let secondText = "";

/**
 * Nanoseconds exceed the exact integers of a double, so they are written as seconds, microseconds and three
 * zeros. The text of the last second is cached, because most spans share it.
 */
function nanoseconds(wallMs: number): string {
  const micros = Math.round(wallMs * 1000);
  const wholeSecond = Math.floor(micros / 1_000_000);
  if (wholeSecond !== second) {
    second = wholeSecond;
    secondText = String(wholeSecond);
  }
  const rest = (micros - wholeSecond * 1_000_000) | 0;
  const millis = (rest / 1000) | 0;
  return `${secondText}${threeDigits[millis]}${threeDigits[rest - millis * 1000]}000`;
}

/** The JSON of a span. `originMs` is the wall-clock time at which `performance.now()` was 0. */
export function spanJson(span: KeptSpan, originMs: number): string {
  const { parentId, state, link, error } = span;
  let rest = "";
  if (parentId !== undefined) rest += `","parentSpanId":"${parentId}`;
  if (state !== undefined) rest += `","traceState":${asciiJson(state).slice(0, -1)}`;
  const attributes =
    error === undefined ? span.attributes : span.attributes + attributeJson("error.type", error);
  let end = `"attributes":[${attributes.slice(1)}]`;
  if (link !== undefined)
    end += `,"links":[{"traceId":"${link.traceId}","spanId":"${link.spanId}","flags":${Number(link.isSampled)}}]`;
  if (error !== undefined) end += `,"status":{"code":${failed}}`;
  return (
    `{"traceId":"${span.traceId}","spanId":"${span.spanId}${rest}","name":"${innerJson(span.name)}",` +
    `"kind":${spanKinds[span.kind]},"flags":${sampled},` +
    `"startTimeUnixNano":"${nanoseconds(originMs + span.startMs)}",` +
    `"endTimeUnixNano":"${nanoseconds(originMs + span.endMs)}",${end}}`
  );
}

/**
 * The beginning of a request to the collector, before the list of spans. `resource` is JSON: this process's
 * attributes.
 */
export const requestStart = (resource: string, version: string): string =>
  `{"resourceSpans":[{"resource":{"attributes":${resource}},"scopeSpans":[{"scope":{"name":"selvedge","version":${asciiJson(version)}},"spans":[`;
export const requestEnd = "]}]}]}";

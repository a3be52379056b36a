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

/** "000" to "999": cheaper than to write a number as text. */
const threeDigits = Array.from({ length: 1000 }, (_, i) => String(i).padStart(3, "0"));
let second = 0;
let secondText = "";

/**
 * Nanoseconds exceed the integers of a double, so they are written digit by digit. Most spans share the text of their
 * second.
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

/** `originMs` is the wall time of 0 on the clock of `performance.now()`. */
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

/** The beginning of a request for the collector, before the list of spans. `resource` is the JSON of the attributes of this process. */
export const requestStart = (resource: string, version: string): string =>
  `{"resourceSpans":[{"resource":{"attributes":${resource}},"scopeSpans":[{"scope":{"name":"selvedge","version":${asciiJson(version)}},"spans":[`;
export const requestEnd = "]}]}]}";

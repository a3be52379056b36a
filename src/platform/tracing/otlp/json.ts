import { asciiJson } from "../../util/ascii-json.ts";
import { spanKinds, type AttributeValue, type KeptSpan } from "../spans/span.ts";
import { attributeTexts } from "./attribute-texts.ts";
import type { ProcessAttributes, SpanEncoding } from "./encoding.ts";

/*
 * The JSON mapping of OTLP: ids are hexadecimal, 64-bit integers are text, enumerations are numbers. All of it is
 * ASCII.
 */

const failed = 2;
/** The flag of a sampled trace. */
const sampled = 1;

/** Printable ASCII without quotation marks and backslashes, which JSON writes as it is. */
const plain = /^[ !#-[\]-~]*$/;
/** A text as written in JSON, without its quotation marks. */
const innerJson = (text: string): string =>
  plain.test(text) ? text : asciiJson(text.toWellFormed()).slice(1, -1);

function valueJson(value: AttributeValue): string {
  if (typeof value === "string") return `"stringValue":"${innerJson(value)}"`;
  if (Number.isSafeInteger(value)) return `"intValue":"${value}"`;
  return `"${typeof value === "boolean" ? "boolValue" : "doubleValue"}":${value}`;
}

/** A comma and the JSON of a KeyValue. */
const attribute = attributeTexts(
  (name) => `,{"key":${asciiJson(name)},"value":{`,
  (beginning, value) => `${beginning}${valueJson(value)}}}`,
);

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

function spanJson(span: KeptSpan, originMs: number): string {
  const { parent, state, link, error } = span;
  let rest = "";
  if (parent !== undefined) rest += `","parentSpanId":"${parent.hex}`;
  if (state !== undefined) rest += `","traceState":${asciiJson(state).slice(0, -1)}`;
  const attributes = error === undefined ? span.attributes : span.attributes + attribute("error.type", error);
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

function rejected(answer: Buffer): number {
  try {
    const { partialSuccess } = JSON.parse(answer.toString()) as {
      partialSuccess?: { rejectedSpans?: unknown };
    };
    return Number(partialSuccess?.rejectedSpans ?? 0);
  } catch {
    return 0; // collectors may answer with an empty body
  }
}

/** OTLP/HTTP with JSON. */
export function jsonEncoding(resource: ProcessAttributes, version: string): SpanEncoding {
  const own = Array.from(resource, ([name, value]) => attribute(name, value));
  const head =
    `{"resourceSpans":[{"resource":{"attributes":[${own.join("").slice(1)}]},` +
    `"scopeSpans":[{"scope":{"name":"selvedge","version":${asciiJson(version)}},"spans":[`;
  return {
    contentType: "application/json",
    attribute,
    write(span, originMs, bytes, at) {
      const json = spanJson(span, originMs);
      return at + json.length > bytes.length ? -1 : at + bytes.write(json, at, "latin1");
    },
    head: () => head,
    separator: ",",
    tail: "]}]}]}",
    rejected,
  };
}

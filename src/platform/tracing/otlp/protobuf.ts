import { spanKinds, type AttributeValue, type KeptSpan } from "../spans/span.ts";
import type { TraceContext } from "../spans/trace-context.ts";
import { attributeTexts } from "./attribute-texts.ts";
import type { ProcessAttributes, SpanEncoding } from "./encoding.ts";
import { bytesOf, field, fieldsOf, tag, utf8, varint } from "./wire.ts";

/*
 * OTLP as protobuf. The numbers are those of the messages in opentelemetry-proto 1.x. Times are written byte by byte,
 * all other parts of a span as one text.
 */

const failed = 2;
const sampled = 1;

function anyValue(value: AttributeValue): string {
  if (typeof value === "string") return field(1, utf8(value));
  if (typeof value === "boolean") return tag(2, "varint") + varint(Number(value));
  if (Number.isSafeInteger(value) && value >= 0) return tag(3, "varint") + varint(value);
  const bytes = Buffer.allocUnsafe(8);
  if (!Number.isSafeInteger(value)) {
    bytes.writeDoubleLE(value);
    return tag(4, "fixed64") + bytes.toString("latin1");
  }
  return tag(3, "varint") + negative(value);
}

/** A negative integer, in two's complement of 64 bits. */
function negative(value: number): string {
  let rest = BigInt.asUintN(64, BigInt(value));
  let text = "";
  for (; rest > 0x7fn; rest >>= 7n) text += String.fromCharCode(Number(rest & 0x7fn) | 0x80);
  return text + String.fromCharCode(Number(rest));
}

const attributeTag = tag(9, "length");
const valueTag = tag(2, "length");
/** The key and value of a KeyValue. */
const keyValue = (key: string, value: AttributeValue): string => {
  const any = anyValue(value);
  return `${key}${valueTag}${varint(any.length)}${any}`;
};
const keyOf = (name: string): string => field(1, utf8(name));
const attribute = attributeTexts(keyOf, (key, value) => {
  const pair = keyValue(key, value);
  return attributeTag + varint(pair.length) + pair;
});

const linkText = ({ traceId, spanId, isSampled }: TraceContext): string =>
  field(
    13,
    field(1, bytesOf(traceId)) +
      field(2, bytesOf(spanId)) +
      `${tag(6, "fixed32")}${String.fromCharCode(Number(isSampled))}\0\0\0`,
  );
const failedText = field(15, tag(3, "varint") + varint(failed));
const nameTag = tag(5, "length");

/** The beginnings of fields that have an id of a fixed length. */
const traceTag = tag(1, "length") + varint(16);
const idTag = tag(2, "length") + varint(8);
const parentTag = tag(4, "length") + varint(8);
/** The kind of a span, and the flags of its trace, which is sampled. */
const kindTexts = new Map(
  Object.entries(spanKinds).map(([kind, number]) => [
    kind,
    `${tag(6, "varint")}${varint(number)}${tag(16, "fixed32")}${String.fromCharCode(sampled)}\0\0\0`,
  ]),
);

/** A span without its times. */
function textOf({ trace, id, parent, kind, name, attributes, state, link, error }: KeptSpan): string {
  const shown = utf8(name);
  let text = traceTag + trace.bytes + idTag + id.bytes + kindTexts.get(kind)!;
  if (parent !== undefined) text += parentTag + parent.bytes;
  text += nameTag + varint(shown.length) + shown + attributes;
  if (error !== undefined) text += attribute("error.type", error) + failedText;
  if (state !== undefined) text += field(3, utf8(state));
  if (link !== undefined) text += linkText(link);
  return text;
}

/** Writes a time in nanoseconds, which exceed the exact integers of a double: a whole number of microseconds. */
function writeTime(bytes: Buffer, start: number, fieldTag: number, wallMs: number): number {
  const micros = Math.round(wallMs * 1000);
  const high = Math.floor(micros / 2 ** 32);
  const low = (micros - high * 2 ** 32) * 1000;
  const carry = Math.floor(low / 2 ** 32);
  bytes[start] = fieldTag;
  writeWord(bytes, start + 1, low - carry * 2 ** 32);
  writeWord(bytes, start + 5, high * 1000 + carry);
  return start + 9;
}

/** Writes 32 bits, the lowest byte first. */
function writeWord(bytes: Buffer, at: number, word: number): void {
  bytes[at] = word;
  bytes[at + 1] = word >>> 8;
  bytes[at + 2] = word >>> 16;
  bytes[at + 3] = word >>> 24;
}

function writeVarint(bytes: Buffer, start: number, value: number): number {
  let at = start;
  let rest = value;
  for (; rest > 0x7f; rest >>>= 7) bytes[at++] = (rest & 0x7f) | 0x80;
  bytes[at++] = rest;
  return at;
}

const timesBytes = 9 + 9;
/** At most these many bytes are before a span: its field and its length. */
const lengthBytesMax = 5;

function write(span: KeptSpan, originMs: number, bytes: Buffer, start: number): number {
  const text = textOf(span);
  const length = timesBytes + text.length;
  if (start + lengthBytesMax + length > bytes.length) return -1;
  let at = start;
  bytes[at++] = 0x12;
  at = writeVarint(bytes, at, length);
  at = writeTime(bytes, at, 0x39, originMs + span.startMs);
  at = writeTime(bytes, at, 0x41, originMs + span.endMs);
  return at + bytes.write(text, at, "latin1");
}

function rejected(answer: Buffer): number {
  try {
    for (const [number, part] of fieldsOf(answer))
      if (number === 1 && typeof part !== "number")
        for (const [inner, count] of fieldsOf(part)) if (inner === 1) return Number(count);
  } catch {
    // no message: the spans are accepted by the status
  }
  return 0;
}

/** OTLP/HTTP with protobuf. */
export function protobufEncoding(resource: ProcessAttributes, version: string): SpanEncoding {
  const own = field(
    1,
    Array.from(resource, ([name, value]) => field(1, keyValue(keyOf(name), value))).join(""),
  );
  const scope = field(1, field(1, "selvedge") + field(2, utf8(version)));
  return {
    contentType: "application/x-protobuf",
    attribute,
    write,
    head(spanBytes) {
      const scopeSpans = tag(2, "length") + varint(scope.length + spanBytes) + scope;
      const inner = own + scopeSpans;
      return tag(1, "length") + varint(inner.length + spanBytes) + inner;
    },
    separator: "",
    tail: "",
    rejected,
  };
}

import { randomFillSync } from "node:crypto";

/*
 * Random ids, cut from texts that are filled for many ids at once: a system call and a conversion for each id
 * would cost more than the rest of a trace that is not kept. One text is a list of `traceparent` values, so
 * that such a trace needs only one slice of it. Another has the same ids as bytes, for spans that are sent.
 */

/** The id of a trace or span. */
export interface Id {
  /** In hexadecimal digits. */
  hex: string;
  /** As a text whose characters are bytes. */
  bytes: string;
}

/** The id with these hexadecimal digits. */
export const idOf = (hex: string): Id => ({ hex, bytes: Buffer.from(hex, "hex").toString("latin1") });

/** A `traceparent` whose flags mean that the trace is not kept. */
const form = `00-${"0".repeat(32)}-${"0".repeat(16)}-00`;
const formLength = form.length;
const traceAt = 3;
const traceEnd = traceAt + 32;
const spanAt = traceEnd + 1;
const spanEnd = spanAt + 16;
const traceBytes = 16;
const spanBytes = 8;
const randomBytes = traceBytes + spanBytes;
const formsCount = 128;
const sampleDigits = 13;

const random = Buffer.allocUnsafeSlow(formsCount * randomBytes);
const digits = Buffer.from("0123456789abcdef");
const forms = Buffer.from(form.repeat(formsCount));
let text = "";
/** The random bytes of `text`. */
let textBytes = "";
let at = 0;

/** The `traceparent` of a new trace and span that are not kept. */
export function newTraceParent(): string {
  if (at === text.length) fill();
  return text.slice(at, (at += formLength));
}

function fill(): void {
  randomFillSync(random);
  let from = 0;
  for (let start = 0; start < forms.length; start += formLength) {
    from = writeDigits(start + traceAt, start + traceEnd, from);
    from = writeDigits(start + spanAt, start + spanEnd, from);
  }
  text = forms.toString("latin1");
  textBytes = random.toString("latin1");
  at = 0;
}

/** Writes random bytes as digits. Returns the index after them. */
function writeDigits(start: number, end: number, first: number): number {
  let from = first;
  for (let to = start; to < end; to += 2) {
    const byte = random[from++]!;
    forms[to] = digits[byte >> 4]!;
    forms[to + 1] = digits[byte & 15]!;
  }
  return from;
}

/** The number that the last digits of a trace's id are, which decide whether it is kept: 13, which are 52 bits. */
export const sampleNumberOf = (parent: string): number =>
  Number.parseInt(parent.slice(traceEnd - sampleDigits, traceEnd), 16);

/** The same number of the newest `traceparent`, without reading digits. */
export function newestSampleNumber(): number {
  const end = (at / formLength - 1) * randomBytes + traceBytes;
  const high = ((random[end - 7]! & 15) << 16) | (random[end - 6]! << 8) | random[end - 5]!;
  const low =
    (random[end - 4]! << 24) | (random[end - 3]! << 16) | (random[end - 2]! << 8) | random[end - 1]!;
  return high * 2 ** 32 + (low >>> 0);
}

/** The ids of the newest `traceparent`, which is given. */
export function newestIds(parent: string): { trace: Id; span: Id } {
  const start = (at / formLength - 1) * randomBytes;
  const between = start + traceBytes;
  return {
    trace: { hex: traceIdOf(parent), bytes: textBytes.slice(start, between) },
    span: { hex: spanIdOf(parent), bytes: textBytes.slice(between, between + spanBytes) },
  };
}

/** The ids in the value of a `traceparent`. */
export const traceIdOf = (parent: string): string => parent.slice(traceAt, traceEnd);
export const spanIdOf = (parent: string): string => parent.slice(spanAt, spanEnd);

const randomOfSpans = Buffer.allocUnsafeSlow(512 * spanBytes);
let spanDigits = "";
let spanIds = "";
let spanIdAt = 0;

export function newSpanId(): Id {
  if (spanIdAt === spanIds.length) {
    randomFillSync(randomOfSpans);
    spanDigits = randomOfSpans.toString("hex");
    spanIds = randomOfSpans.toString("latin1");
    spanIdAt = 0;
  }
  const start = spanIdAt;
  spanIdAt += spanBytes;
  return { hex: spanDigits.slice(2 * start, 2 * spanIdAt), bytes: spanIds.slice(start, spanIdAt) };
}

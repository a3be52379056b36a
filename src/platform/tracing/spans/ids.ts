import { randomFillSync } from "node:crypto";

/*
 * Random ids, cut from a text that is filled for many ids at once: a system call and a conversion for each id
 * would cost more than the rest of a trace that is not kept. The text is a list of `traceparent` values, so
 * that such a trace needs only one slice of it.
 */

/** A `traceparent` whose flags mean that the trace is not kept. */
const form = "00-tttttttttttttttttttttttttttttttt-ssssssssssssssss-00";
const formLength = form.length;
const formsCount = 64;
const randomBytes = 24;

const random = Buffer.allocUnsafeSlow(formsCount * randomBytes);
const digits = Buffer.from("0123456789abcdef");
const forms = Buffer.from(form.repeat(formsCount));
/** The positions of the random digits in a form. */
const digitPositions = Uint8Array.from(
  Array.from(form).flatMap((letter, i) => ("ts".includes(letter) ? [i] : [])),
);
let text = "";
let at = 0;

/** The `traceparent` of a new trace and span that are not kept. */
export function newTraceParent(): string {
  if (at === text.length) fill();
  return text.slice(at, (at += formLength));
}

function fill(): void {
  randomFillSync(random);
  for (let i = 0; i < formsCount; i++) {
    const start = i * formLength;
    for (let j = 0; j < randomBytes; j++) {
      const byte = random[i * randomBytes + j]!;
      forms[start + digitPositions[2 * j]!] = digits[byte >> 4]!;
      forms[start + digitPositions[2 * j + 1]!] = digits[byte & 15]!;
    }
  }
  text = forms.toString("latin1");
  at = 0;
}

/** The ids in the value of a `traceparent`. */
export const traceIdOf = (parent: string): string => parent.slice(3, 35);
export const spanIdOf = (parent: string): string => parent.slice(36, 52);

const spanIdLength = 16;
const randomOfSpans = Buffer.allocUnsafeSlow(256 * (spanIdLength / 2));
let spanIds = "";
let spanIdAt = 0;

export function newSpanId(): string {
  if (spanIdAt === spanIds.length) {
    spanIds = randomFillSync(randomOfSpans).toString("hex");
    spanIdAt = 0;
  }
  return spanIds.slice(spanIdAt, (spanIdAt += spanIdLength));
}

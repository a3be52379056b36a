/** Deeper values overflow the stack of recursive functions, including `JSON.stringify`. */
const depthMax = 500;
/** Validating a list of half a million invalid values uses a gigabyte for the issues. */
const defaultValuesMax = 100_000;

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [openArray, closeArray, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/** JSON beyond the limits. The message begins with "it". */
export class TooMuchJson extends SyntaxError {}

/**
 * Parses untrusted JSON. Throws a SyntaxError for invalid JSON, and `TooMuchJson` for more than 500 levels or
 * more than `valuesMax` values. The caller must limit the length of the text.
 */
export function parseBounded(text: string, valuesMax = defaultValuesMax): unknown {
  // A shorter text cannot exceed either limit.
  if (text.length > 2 * depthMax) check(text, valuesMax);
  return JSON.parse(text) as unknown;
}

function check(text: string, valuesMax: number): void {
  let [depth, values] = [0, 1];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) at = endOfString(text, at);
    else if (code === comma) values++;
    else if (code === openArray || code === openObject) depth++;
    else if (code === closeArray || code === closeObject) depth--;
    if (depth > depthMax) throw new TooMuchJson(`it is nested more than ${depthMax} deep`);
    if (values > valuesMax) throw new TooMuchJson(`it has more than ${valuesMax} values`);
  }
}

/** The index of the closing quotation mark, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text.charCodeAt(end - 1 - escapes) === backslash) escapes++;
    if (escapes % 2 === 0) return end;
  }
  return text.length;
}

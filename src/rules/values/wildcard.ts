import { Fault } from "./fault.ts";

/** A pattern for a whole value, split into the literal pieces around each `*`. */
export interface WildcardPattern {
  source: string;
  strict: boolean;
  pieces: readonly string[];
  test: (bytes: string) => boolean;
}

/** Compiles a pattern. Without `strict`, ASCII case is ignored. Throws a Fault at `span` for an invalid pattern. */
export function compileWildcard(
  source: string,
  strict: boolean,
  span: { start: number; end: number },
): WildcardPattern {
  const pieces = splitPieces(source, span);
  const wanted = strict ? pieces : pieces.map(lowerAscii);
  return { source, strict, pieces: wanted, test: strict ? matcherOf(wanted) : looseMatcherOf(wanted) };
}

/** Lower-cases ASCII letters only. */
export function lowerAscii(bytes: string): string {
  const lower = bytes.toLowerCase();
  // JavaScript also lower-cases these latin1 letters.
  if (lower === bytes || !/[\xc0-\xde]/.test(bytes)) return lower;
  return bytes.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/** Upper-cases ASCII letters only. */
export function upperAscii(bytes: string): string {
  const upper = bytes.toUpperCase();
  if (upper === bytes || !/[\x80-\xff]/.test(bytes)) return upper;
  return bytes.replace(/[a-z]+/g, (letters) => letters.toUpperCase());
}

function splitPieces(source: string, span: { start: number; end: number }): string[] {
  const pieces = [""];
  for (let i = 0; i < source.length; i++) {
    const char = source[i]!;
    if (char === "\\") {
      const escaped = source[++i];
      if (escaped !== "*" && escaped !== "\\") {
        throw new Fault("invalid wildcard: expected \\* or \\\\ after \\", span.start, span.end);
      }
      pieces[pieces.length - 1] += escaped;
    } else if (char === "*") {
      if (source[i + 1] === "*") throw new Fault("wildcard contains a double star", span.start, span.end);
      pieces.push("");
    } else {
      pieces[pieces.length - 1] += char;
    }
  }
  return pieces;
}

function matcherOf(pieces: readonly string[]): (bytes: string) => boolean {
  const first = pieces[0]!;
  if (pieces.length === 1) return (bytes) => bytes === first;
  const last = pieces.at(-1)!;
  const middle = pieces.slice(1, -1);
  const least = first.length + last.length;
  if (middle.length === 0) {
    return (bytes) => bytes.length >= least && bytes.startsWith(first) && bytes.endsWith(last);
  }
  return (bytes) => {
    if (bytes.length < least || !bytes.startsWith(first) || !bytes.endsWith(last)) return false;
    let at = first.length;
    for (const piece of middle) {
      const found = bytes.indexOf(piece, at);
      if (found === -1) return false;
      at = found + piece.length;
    }
    return at <= bytes.length - last.length;
  };
}

/**
 * A case-insensitive matcher. A single piece between two `*` is a plain search, which needs no copy of the
 * value.
 */
function looseMatcherOf(pieces: readonly string[]): (bytes: string) => boolean {
  const [first, middle, last] = pieces;
  if (pieces.length === 3 && first === "" && last === "" && middle !== "") {
    const search = new RegExp(Array.from(middle!, eitherCase).join(""));
    return (bytes) => search.test(bytes);
  }
  const test = matcherOf(pieces);
  return (bytes) => test(lowerAscii(bytes));
}

function eitherCase(char: string): string {
  const code = `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`;
  return /^[a-z]$/.test(char) ? `[${char}${char.toUpperCase()}]` : code;
}

/**
 * The text that each `*` matches, as short as possible from left to right; undefined if the value does not
 * match.
 */
export function captureWildcard(pattern: WildcardPattern, bytes: string): string[] | undefined {
  if (!pattern.test(bytes)) return undefined;
  const text = pattern.strict ? bytes : lowerAscii(bytes);
  const { pieces } = pattern;
  const captures: string[] = [];
  let at = pieces[0]!.length;
  for (let i = 1; i < pieces.length; i++) {
    const piece = pieces[i]!;
    const end = i === pieces.length - 1 ? bytes.length - piece.length : text.indexOf(piece, at);
    captures.push(bytes.slice(at, end));
    at = end + piece.length;
  }
  return captures;
}

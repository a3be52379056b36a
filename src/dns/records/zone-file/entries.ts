import { dnsErrors } from "../errors.ts";

/** One entry of a zone file: its words, including quotes and escapes, and its first line. */
export interface ZoneFileEntry {
  line: number;
  words: string[];
  /** An entry that begins with a blank has the name of the entry before it. */
  isIndented: boolean;
  /** The text of the last comment. */
  comment: string;
}

/**
 * Matches a comment, a parenthesis, or a word: quoted, or made of plain characters, escapes and quoted parts
 * as in alpn="h2,h3".
 */
const pattern =
  /[ \t]*(?:;(.*)|([()])|("(?:[^"\\]|\\.)*"|(?:[^\s;()"\\]|\\.)(?:[^\s;()"\\]|\\.|"(?:[^"\\]|\\.)*")*))/suy;

/** The longest record is far shorter. The pattern needs memory for each character of a word. */
const entryCharactersMax = 64 * 1024;

/** Far more than the records of the largest file and their comments. */
const linesMax = 1_000_000;

/**
 * Splits a file into entries. Parentheses join lines, quotes protect blanks and semicolons, and a semicolon
 * begins a comment. Yields once for each line: undefined if no entry ends there.
 */
export function* entriesOf(text: string): Generator<ZoneFileEntry | undefined> {
  let open: ZoneFileEntry | undefined;
  let depth = 0;
  let line = 0;
  let length = 0;
  for (const raw of linesOf(text)) {
    line += 1;
    if (line > linesMax) throw dnsErrors.importFault(line, `expected at most ${linesMax} lines`);
    length = open === undefined ? raw.length : length + raw.length;
    if (length > entryCharactersMax)
      throw dnsErrors.importFault(line, `expected at most ${entryCharactersMax} characters in an entry`);
    const entry: ZoneFileEntry = open ?? { line, words: [], isIndented: /^[ \t]/.test(raw), comment: "" };
    const end = raw.trimEnd().length;
    pattern.lastIndex = 0;
    while (pattern.lastIndex < end) {
      const match = pattern.exec(raw);
      if (match === null) throw dnsErrors.importFault(line, "expected words, complete quotes or a comment");
      const [, comment, parenthesis, word] = match;
      if (comment !== undefined) entry.comment = comment;
      else if (parenthesis === "(") depth += 1;
      else if (parenthesis === ")") depth -= 1;
      else entry.words.push(word!);
      if (depth < 0) throw dnsErrors.importFault(line, "a closing parenthesis has no opening one");
    }
    open = depth > 0 ? entry : undefined;
    yield depth === 0 && entry.words.length > 0 ? entry : undefined;
  }
  if (open !== undefined) throw dnsErrors.importFault(open.line, "a parenthesis is not closed");
}

function* linesOf(text: string): Generator<string> {
  let start = 0;
  while (start < text.length) {
    const end = text.indexOf("\n", start);
    const line = text.slice(start, end < 0 ? text.length : end);
    yield line.endsWith("\r") ? line.slice(0, -1) : line;
    start = end < 0 ? text.length : end + 1;
  }
}

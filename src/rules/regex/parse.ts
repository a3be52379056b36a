import { readEscape } from "./escapes.ts";
import { foldUnicode } from "./fold.ts";
import { readGroupFlags } from "./group-flags.ts";
import { readClass } from "./parse-class.ts";
import { byteMax, codePointMax, foldAscii, negate, type RangeSet } from "./automaton/range-set.ts";
import { PatternReader } from "./reader.ts";
import { readRepeat } from "./repeat.ts";
import { refuseSize, sizeOf, stateCountMax } from "./size.ts";
import { alternate, concat, empty, type Pattern } from "./syntax.ts";
import { utf8Literal, utf8Pattern } from "./automaton/utf8.ts";

const nestLimit = 250;
const notLineFeed: RangeSet = [[0x0a, 0x0a]];

export interface ParsedPattern {
  pattern: Pattern;
  groupCount: number;
}

/**
 * Parses a pattern in the syntax of Rust's regex crate, over bytes and with Unicode off. Throws
 * `PatternError`.
 */
export function parsePattern(text: string): ParsedPattern {
  const parser = new PatternParser(text);
  return { pattern: parser.parse(), groupCount: parser.groupCount };
}

class PatternParser {
  readonly #reader: PatternReader;
  readonly #names = new Set<string>();
  groupCount = 0;
  #unicodeSize = 0;

  constructor(text: string) {
    this.#reader = new PatternReader(text);
  }

  parse(): Pattern {
    const pattern = this.#alternation(0);
    const reader = this.#reader;
    if (!reader.ended) throw reader.fault("unopened group", reader.pos, reader.pos + 1);
    return pattern;
  }

  #alternation(depth: number): Pattern {
    const branches: Pattern[] = [];
    do branches.push(this.#sequence(depth));
    while (this.#reader.take("|"));
    return alternate(branches);
  }

  #sequence(depth: number): Pattern {
    const reader = this.#reader;
    const items: Pattern[] = [];
    for (;;) {
      reader.skipIgnored();
      if (reader.ended || reader.here === "|" || reader.here === ")") return concat(items);
      const start = reader.pos;
      if (/^[*+?{]$/.test(reader.here)) {
        throw reader.fault("repetition operator missing expression", start, start + 1);
      }
      let item = this.#atom(depth);
      if (item === undefined) continue;
      for (;;) {
        reader.skipIgnored();
        const repeat = readRepeat(reader);
        if (repeat === undefined) break;
        item = { kind: "repeat", item, ...repeat };
      }
      items.push(item);
    }
  }

  /** One item that a repetition can apply to; undefined for flags. */
  #atom(depth: number): Pattern | undefined {
    const reader = this.#reader;
    const { flags } = reader;
    switch (reader.here) {
      case "(":
        return this.#group(depth);
      case "[":
        return this.#set(readClass(reader));
      case "\\":
        return this.#escape();
      case "^":
        reader.pos++;
        return { kind: "assert", assertion: flags.multiLine ? "line-start" : "start" };
      case "$":
        reader.pos++;
        return { kind: "assert", assertion: flags.multiLine ? "line-end" : "end" };
      case ".": {
        reader.pos++;
        const max = flags.unicode ? codePointMax : byteMax;
        return this.#set(flags.dotAll ? [[0, max]] : negate(notLineFeed, max));
      }
      default:
        reader.pos++;
        return this.#literal(reader.chars[reader.pos - 1]!, false, reader.pos - 1);
    }
  }

  #group(depth: number): Pattern | undefined {
    const reader = this.#reader;
    const start = reader.pos;
    if (depth >= nestLimit) {
      throw reader.fault(
        `exceed the maximum number of nested parentheses/brackets (${nestLimit})`,
        start,
        start + 1,
      );
    }
    reader.pos++;
    const outer = reader.flags;
    let index: number | undefined;
    if (reader.take("?")) {
      const lookAround = ["=", "!", "<=", "<!"].find((mark) => reader.take(mark));
      if (lookAround !== undefined) {
        throw reader.fault("look-around, including look-ahead and look-behind, is not supported", start);
      }
      if (reader.take("P<") || reader.take("<")) {
        this.#name(start);
        index = ++this.groupCount;
      } else if (readGroupFlags(reader, start) === "flags") {
        return undefined;
      }
    } else {
      index = ++this.groupCount;
    }
    const item = this.#alternation(depth + 1);
    if (!reader.take(")")) throw reader.fault("unclosed group", start, start + 1);
    reader.flags = outer;
    return index === undefined ? item : { kind: "group", item, index };
  }

  #name(start: number): void {
    const reader = this.#reader;
    const name = reader.takeUntil(">");
    if (name === undefined) throw reader.fault("unclosed capture group name", start);
    if (name === "") throw reader.fault("empty capture group name", start);
    if (!/^[A-Za-z_][A-Za-z0-9_.[\]]*$/.test(name))
      throw reader.fault("invalid capture group character", start);
    if (this.#names.has(name)) throw reader.fault("duplicate capture group name", start);
    this.#names.add(name);
  }

  #escape(): Pattern {
    const reader = this.#reader;
    const start = reader.pos++;
    const escape = readEscape(reader, start);
    if (escape?.kind === "set") return this.#set(escape.set);
    if (escape?.kind === "char") return this.#literal(escape.char, escape.byte, start);
    const letter = reader.here;
    reader.pos++;
    if (letter === "A") return { kind: "assert", assertion: "start" };
    if (letter === "z") return { kind: "assert", assertion: "end" };
    if ((letter === "b" && reader.here === "{") || letter === "<" || letter === ">") {
      throw reader.fault("one-sided word boundaries are not supported", start);
    }
    if ((letter === "b" || letter === "B") && reader.flags.unicode) {
      throw reader.fault("Unicode word boundaries are not supported, use (?-u:\\b)", start);
    }
    if (letter === "b") return { kind: "assert", assertion: "word" };
    if (letter === "B") return { kind: "assert", assertion: "not-word" };
    throw reader.fault("unrecognized escape sequence", start);
  }

  #set(set: RangeSet): Pattern {
    const { ignoreCase, unicode } = this.#reader.flags;
    if (unicode) {
      const pattern = utf8Pattern(ignoreCase ? foldUnicode(set) : set);
      // A short pattern can need thousands of states, so they are counted while parsing.
      this.#unicodeSize += sizeOf(pattern);
      if (this.#unicodeSize > stateCountMax) throw refuseSize();
      return pattern;
    }
    return { kind: "bytes", set: ignoreCase ? foldAscii(set) : set };
  }

  #literal(char: string, byte: boolean, start: number): Pattern {
    const { ignoreCase, unicode } = this.#reader.flags;
    const point = char.codePointAt(0)!;
    if (char === "") return empty;
    if (point > 0x7f && !(byte && !unicode)) {
      if (ignoreCase && !unicode) throw this.#reader.fault("Unicode not allowed here", start);
      return ignoreCase ? utf8Pattern(foldUnicode([[point, point]])) : utf8Literal(char);
    }
    return this.#set([[point, point]]);
  }
}

/**
 * Texts on which a regular expression could take time that grows with the square of their length: a text that leads to
 * one of its unlimited repetitions, this repetition many times, and an end that does not match.
 */
export function* pumpedTexts({ source, flags }: RegExp, length: number): Generator<string> {
  const reader = new PatternReader(source, flags.replaceAll(/[gy]/g, ""));
  reader.alternatives();
  for (const { before, unit } of reader.pumps)
    for (const [start, repeated] of [
      [before, unit],
      [`\0${before}`, unit],
      ["", before + unit],
    ] as const)
      for (const end of ["\0", "x!", "\n\n"])
        yield start + repeated.repeat(Math.ceil(length / repeated.length)) + end;
}

const printable = Array.from({ length: 95 }, (_, i) => String.fromCodePoint(32 + i)).join("");
/** Characters that repetitions are tried with, and one of each further kind. */
const characters = Array.from(`a0 \t/=-.,;:%['"<(_&+\r\n\0é${printable}`);
const pumpsOfClass = 8;

/** Reads a pattern, and builds a text that matches it so far. */
class PatternReader {
  readonly pumps: { before: string; unit: string }[] = [];
  readonly #pattern: string;
  readonly #flags: string;
  #at = 0;
  /** Matches the pattern up to here, with as few repetitions as possible. */
  #matched = "";

  constructor(pattern: string, flags: string) {
    this.#pattern = pattern;
    this.#flags = flags;
  }

  alternatives(): void {
    const before = this.#matched;
    let first: string | undefined;
    for (;;) {
      this.#matched = before;
      while (this.#at < this.#pattern.length && !"|)".includes(this.#pattern[this.#at]!)) this.#term();
      first ??= this.#matched;
      if (this.#pattern[this.#at] !== "|") break;
      this.#at++;
    }
    this.#matched = first;
  }

  #term(): void {
    const before = this.#matched;
    const units = this.#units();
    const [whole, least, most] =
      /^(?:[*+?]|\{(\d+)(?:(,)(\d*))?\})\??/.exec(this.#pattern.slice(this.#at)) ?? [];
    if (whole === undefined) return;
    this.#at += whole.length;
    const min = least === undefined ? (whole.startsWith("+") ? 1 : 0) : Number(least);
    const isUnlimited = /^[*+]/.test(whole) || (most === "," && !/,\d/.test(whole));
    if (isUnlimited) for (const unit of units) if (unit !== "") this.pumps.push({ before, unit });
    this.#matched = before + (units[0] ?? "").repeat(min);
  }

  /** Takes one atom; returns texts that it matches. */
  #units(): string[] {
    const start = this.#at;
    const character = this.#pattern[this.#at++]!;
    if (character === "(") return this.#group(start);
    if (character === "[") {
      for (let depth = 1; depth > 0; this.#at++) {
        const next = this.#pattern[this.#at];
        if (next === "\\") this.#at++;
        else if (next === "]") depth--;
        else if (next === "[" && this.#flags.includes("v")) depth++;
      }
      return this.#matching(start);
    }
    if (character === "\\") {
      const [escape] = /^(?:u\{[^}]*\}|u[\da-f]{4}|x[\da-f]{2}|[pP]\{[^}]*\}|k<[^>]*>|c[A-Z]|[^])/i.exec(
        this.#pattern.slice(this.#at),
      )!;
      this.#at += escape.length;
      return /^(?:[bB1-9]|k<)/.test(escape) ? [] : this.#matching(start);
    }
    if (character === "^" || character === "$") return [];
    if (character === ".") return this.#matching(start);
    this.#matched += character;
    return [character];
  }

  #group(start: number): string[] {
    const before = this.#matched;
    const [opening] = /^\((?:\?(?:<?[=!]|<[^>]*>|[a-z-]*:))?/.exec(this.#pattern.slice(start))!;
    this.#at = start + opening.length;
    this.alternatives();
    this.#at++;
    const unit = this.#matched.slice(before.length);
    if (/^\(\?<?[=!]/.test(opening)) this.#matched = before;
    return /^\(\?<?[=!]/.test(opening) ? [] : [unit];
  }

  /** Characters that the atom between `start` and here matches. */
  #matching(start: number): string[] {
    const atom = new RegExp(`^(?:${this.#pattern.slice(start, this.#at)})$`, this.#flags);
    const found = [...new Set(characters)].filter((each) => atom.test(each)).slice(0, pumpsOfClass);
    this.#matched += found[0] ?? "";
    return found;
  }
}

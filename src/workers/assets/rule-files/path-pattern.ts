/**
 * A pattern of `_headers` and `_redirects`: a path or `https://host/path`. One `*` matches anything
 * (`:splat`); `:name` matches as much as possible within a label of the host or a segment of the path.
 */
export interface PathPattern {
  /** Whether the pattern has a host. */
  hasHost: boolean;
  /** The values of the placeholders; undefined if the pattern does not match. */
  match(host: string, path: string): Record<string, string> | undefined;
}

const placeholder = /:([A-Za-z]\w*)/g;
const scheme = "https://";

/**
 * Compiles a pattern; undefined if it has two placeholders of the same name. Patterns are untrusted and run
 * on the main thread, so they are not regular expressions, and take time linear in the path.
 */
export function compilePattern(source: string): PathPattern | undefined {
  const hasHost = source.startsWith(scheme);
  const pathAt = hasHost ? `${source}/`.indexOf("/", scheme.length) : 0;
  const host = hasHost ? new PartPattern(source.slice(scheme.length, pathAt), ".") : undefined;
  const path = new PartPattern(source.slice(pathAt), "/");
  const names = [...(host?.names ?? []), ...path.names];
  if (new Set(names).size < names.length) return undefined;
  return {
    hasHost,
    match(requestHost, requestPath) {
      const values: Record<string, string> = {};
      const matches =
        (host === undefined || host.match(requestHost, values)) && path.match(requestPath, values);
      return matches ? values : undefined;
    },
  };
}

/** Inserts the values of placeholders into a target or a header's value. */
export const fillPlaceholders = (text: string, values: Readonly<Record<string, string>>): string =>
  text.includes(":")
    ? text.replace(placeholder, (whole, name: string) =>
        Object.hasOwn(values, name) ? values[name]! : whole,
      )
    : text;

export const isPattern = (path: string): boolean =>
  path.includes("*") || /:[A-Za-z]\w*/.test(path.replace(/^https:\/\//, ""));

/** A host or a path. Placeholders contain no separator, so each piece between two separators is matched alone. */
class PartPattern {
  readonly names: string[];
  readonly #separator: string;
  /** The pieces before the star, or all. */
  readonly #before: Piece[];
  /** The pieces after the star, if there is one. */
  readonly #after: Piece[] | undefined;

  constructor(source: string, separator: string) {
    const [before = "", ...after] = source.split("*");
    const piecesOf = (part: string): Piece[] => part.split(separator).map((text) => new Piece(text));
    this.#separator = separator;
    this.#before = piecesOf(before);
    this.#after = after.length === 0 ? undefined : piecesOf(after.join("*"));
    const pieces = [...this.#before, ...(this.#after ?? [])];
    // A second star is part of the first one's text.
    this.names = [...pieces.flatMap(({ names }) => names), ...after.map(() => "splat")];
  }

  /** Adds the values of the placeholders to `values`. */
  match(text: string, values: Record<string, string>): boolean {
    const separator = this.#separator;
    const [before, after] = [this.#before, this.#after];
    const parts = text.split(separator);
    const whole = (piece: Piece, part: string): boolean =>
      piece.place(part, { atStart: true, atEnd: true }, values) !== undefined;
    if (after === undefined)
      return parts.length === before.length && before.every((piece, i) => whole(piece, parts[i]!));

    // The outer pieces are matched whole. The pieces next to the star may share a part with it.
    const [first, last] = [before.length - 1, parts.length - after.length];
    if (last < first) return false;
    if (!before.slice(0, first).every((piece, i) => whole(piece, parts[i]!))) return false;
    if (!after.slice(1).every((piece, i) => whole(piece, parts[last + 1 + i]!))) return false;
    const right = after[0]!.place(parts[last]!, { atStart: false, atEnd: true }, values);
    if (right === undefined) return false;
    const room = first === last ? parts[first]!.slice(0, right.start) : parts[first]!;
    const left = before[first]!.place(room, { atStart: true, atEnd: false }, values);
    if (left === undefined) return false;
    values["splat"] =
      first === last
        ? room.slice(left.end)
        : [
            parts[first]!.slice(left.end),
            ...parts.slice(first + 1, last),
            parts[last]!.slice(0, right.start),
          ].join(separator);
    return true;
  }
}

/** Literals and the placeholders between them: "a:x-:y" has the literals "a", "-" and "". */
class Piece {
  readonly names: string[];
  readonly #literals: Literal[];

  constructor(source: string) {
    const parts = source.split(placeholder);
    this.#literals = parts.filter((_, i) => i % 2 === 0).map((text) => new Literal(text));
    this.names = parts.filter((_, i) => i % 2 === 1);
  }

  /**
   * Places each literal as far right as the later ones allow, so that earlier placeholders match as much as
   * possible.
   */
  place(
    text: string,
    { atStart, atEnd }: { atStart: boolean; atEnd: boolean },
    values: Record<string, string>,
  ): { start: number; end: number } | undefined {
    const last = this.#literals.length - 1;
    let [start, end] = [text.length, text.length];
    for (let i = last; i >= 0; i--) {
      const literal = this.#literals[i]!;
      // A placeholder matches at least one character.
      const latest = (i === last ? start : start - 1) - literal.length;
      let at = latest;
      if (i === 0 && atStart) at = text.startsWith(literal.text) && latest >= 0 ? 0 : -1;
      else if (i < last || !atEnd) at = literal.lastIn(text, latest);
      const isExact = i === last && atEnd;
      if (at < 0 || (isExact && (at !== latest || !text.endsWith(literal.text)))) return undefined;
      if (i < last) values[this.names[i]!] = text.slice(at + literal.length, start);
      else end = at + literal.length;
      start = at;
    }
    return { start, end };
  }
}

/** Searches for the last occurrence in linear time: the algorithm of Knuth, Morris and Pratt, from the right. */
class Literal {
  readonly text: string;
  readonly #reversed: string;
  /** For each length of a match, the longest shorter match. */
  #shorter: number[] | undefined;

  constructor(text: string) {
    this.text = text;
    this.#reversed = text.split("").toReversed().join("");
  }

  get length(): number {
    return this.text.length;
  }

  /** The last index at or before `latest` where the literal begins; -1 if there is none. */
  lastIn(text: string, latest: number): number {
    const { length } = this;
    if (latest < 0 || length === 0) return latest;
    const shorter = (this.#shorter ??= this.#prepare());
    let matched = 0;
    for (let at = latest + length - 1; at >= 0; at--) {
      while (matched > 0 && text[at] !== this.#reversed[matched]) matched = shorter[matched - 1]!;
      if (text[at] === this.#reversed[matched]) matched += 1;
      if (matched === length) return at;
    }
    return -1;
  }

  #prepare(): number[] {
    const pattern = this.#reversed;
    const shorter = [0];
    for (let i = 1, matched = 0; i < pattern.length; i++) {
      while (matched > 0 && pattern[i] !== pattern[matched]) matched = shorter[matched - 1]!;
      if (pattern[i] === pattern[matched]) matched += 1;
      shorter.push(matched);
    }
    return shorter;
  }
}

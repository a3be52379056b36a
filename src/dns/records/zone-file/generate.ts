import { dnsErrors } from "../errors.ts";
import type { ZoneFileEntry } from "./entries.ts";

const countMax = 65_536;
const widthMax = 63;
const radixes: Readonly<Record<string, number>> = { d: 10, o: 8, x: 16, X: 16 };

/** Expands `$GENERATE 1-3 h$ A 192.0.2.$` into one entry for each number. */
export function* generate({ line, words, comment }: ZoneFileEntry): Generator<ZoneFileEntry> {
  const range = /^(\d{1,9})-(\d{1,9})(?:\/(\d{1,9}))?$/.exec(words[1] ?? "");
  if (range === null || words.length < 5) {
    throw dnsErrors.importFault(line, "expected $GENERATE start-stop[/step] name [ttl] [class] type value");
  }
  const [start, stop, step] = [Number(range[1]), Number(range[2]), Number(range[3] ?? 1)];
  if (step === 0 || stop < start) {
    throw dnsErrors.importFault(line, `expected an ascending range for $GENERATE but received ${words[1]}`);
  }
  if ((stop - start) / step >= countMax) {
    throw dnsErrors.importFault(line, `expected at most ${countMax} records from $GENERATE`);
  }
  for (let number = start; number <= stop; number += step) {
    const shaped = words.slice(2).map((word) => (word.includes("$") ? substitute(word, number, line) : word));
    yield { line, isIndented: false, comment, words: shaped };
  }
}

/**
 * Replaces `$` with the number, `$$` and `\$` with a dollar sign, and `${offset,width,base}` with the
 * formatted number.
 */
function substitute(word: string, number: number, line: number): string {
  return word.replace(/\\\$|\$\$|\$(?:\{([^}$]*)\})?/g, (match, shape?: string) => {
    if (match === "\\$" || match === "$$") return "$";
    const parts = /^(-?\d{1,9})(?:,(\d{1,2})(?:,([doxXnN]))?)?$/.exec(shape ?? "0");
    const [offset, width, base = "d"] = [Number(parts?.[1]), Number(parts?.[2] ?? 0), parts?.[3]];
    const value = number + offset;
    if (parts === null || width > widthMax || value < 0) {
      throw dnsErrors.importFault(line, `expected offset[,width[,base]] but received ${match}`);
    }
    return base === "n" || base === "N" ? nibbles(value, width, base) : digits(value, width, base);
  });
}

function digits(value: number, width: number, base: string): string {
  const text = value.toString(radixes[base]).padStart(width, "0");
  return base === "X" ? text.toUpperCase() : text;
}

/** Hex digits in reverse order with dots between them, as in names under ip6.arpa. */
function nibbles(value: number, width: number, base: string): string {
  const text = value.toString(16).padStart(Math.ceil(width / 2), "0");
  const dotted = text.split("").reverse().join(".");
  return base === "N" ? dotted.toUpperCase() : dotted;
}

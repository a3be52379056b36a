import type { Sliced } from "../../../platform/timers/slices.ts";
import { show } from "../../../platform/util/json.ts";
import { dnsErrors } from "../errors.ts";
import { proxiableTypes, type RecordInput } from "../record.ts";
import { entriesOf, type ZoneFileEntry } from "./entries.ts";
import { generate } from "./generate.ts";
import { parseNotes, type Notes } from "./notes.ts";

/** More than any zone may have, but few enough for memory. Skipped records count too. */
const recordsMax = 200_000;
/** For memory: one long `$GENERATE` would make gigabytes. */
const generatedCharactersMax = 16 * 1024 * 1024;

export interface FileRecord {
  line: number;
  /** Without a TTL if the file has none for it. */
  record: RecordInput;
  notes: Notes | undefined;
}

/** A record of the file that the zone has by itself, and the reason why it is not imported. */
export interface SkippedLine {
  line: number;
  message: string;
}

/** The records of a file, and those that are left out. */
export interface ParsedFile {
  records: FileRecord[];
  skipped: SkippedLine[];
}

/**
 * Parses a BIND file (RFC 1035 §5) into records without validating them. Skips the SOA, and name servers at
 * the apex that have no notes of an export. Throws a DomainError with the line if the file is malformed.
 */
export function* parseZoneFile(
  text: string,
  zoneName: string,
  proxiedByDefault: boolean,
): Sliced<ParsedFile> {
  const reader = new Reader(zoneName, proxiedByDefault);
  for (const entry of entriesOf(text)) {
    yield;
    if (entry === undefined) continue;
    const [first = ""] = entry.words;
    if (entry.isIndented || !first.startsWith("$")) reader.read(entry);
    else if (first.toUpperCase() === "$GENERATE") yield* reader.generate(entry);
    else reader.direct(first.toUpperCase(), entry);
  }
  return { records: reader.records, skipped: reader.skipped };
}

class Reader {
  readonly records: FileRecord[] = [];
  readonly skipped: SkippedLine[] = [];
  readonly #apex: string;
  readonly #proxiedByDefault: boolean;
  #origin: string;
  #ttl: number | undefined;
  #owner: string | undefined;
  #generatedCharacters = 0;

  constructor(zoneName: string, proxiedByDefault: boolean) {
    this.#apex = `${zoneName}.`;
    this.#origin = this.#apex;
    this.#proxiedByDefault = proxiedByDefault;
  }

  direct(directive: string, { line, words: [, value, more] }: ZoneFileEntry): void {
    const isAlone = value !== undefined && more === undefined;
    if (directive === "$INCLUDE") throw dnsErrors.importFault(line, "$INCLUDE directive not allowed");
    if (directive === "$ORIGIN") {
      if (!isAlone) throw dnsErrors.importFault(line, "expected one name after $ORIGIN");
      this.#origin = this.#absolute(value);
      return;
    }
    if (directive !== "$TTL") {
      const known = "$ORIGIN, $TTL or $GENERATE";
      throw dnsErrors.importFault(line, `expected ${known} but received ${show(directive)}`);
    }
    const seconds = isAlone ? parseTtl(value) : undefined;
    if (seconds === undefined) {
      throw dnsErrors.importFault(line, `expected seconds after $TTL but received ${show(value)}`);
    }
    this.#ttl = seconds;
  }

  *generate(entry: ZoneFileEntry): Sliced<void> {
    for (const generated of generate(entry)) {
      for (const word of generated.words) this.#generatedCharacters += word.length + 1;
      if (this.#generatedCharacters > generatedCharactersMax) {
        const expected = `expected at most ${generatedCharactersMax} characters from $GENERATE`;
        throw dnsErrors.importFault(entry.line, expected);
      }
      this.read(generated);
      yield;
    }
  }

  read(entry: ZoneFileEntry): void {
    if (this.records.length + this.skipped.length >= recordsMax)
      throw dnsErrors.importFault(entry.line, `expected at most ${recordsMax} records`);
    const words = [...entry.words];
    if (!entry.isIndented) this.#owner = this.#absolute(words.shift()!);
    const name = this.#owner;
    if (name === undefined)
      throw dnsErrors.importFault(entry.line, "expected a name at the beginning of the line");
    const { ttl, type } = this.#head(words, entry.line);
    const notes = parseNotes(entry.comment);
    if (type === "SOA" || (type === "NS" && name === this.#apex && notes === undefined)) {
      this.skipped.push({ line: entry.line, message: skippedBecause[type] });
      return;
    }
    const proxied = proxiableTypes.has(type) && (notes?.proxied ?? this.#proxiedByDefault);
    this.records.push({
      line: entry.line,
      record: {
        type,
        name,
        content: this.#content(type, words),
        ttl,
        proxied,
        settings: notes?.settings,
        comment: notes?.comment,
        tags: notes?.tags,
      },
      notes,
    });
  }

  /** Removes the TTL and the class, in either order, and the type from the words of an entry. */
  #head(words: string[], line: number): { ttl: number | undefined; type: string } {
    let ttl: number | undefined;
    let dnsClass: string | undefined;
    for (let word = words.shift(); word !== undefined; word = words.shift()) {
      const seconds = parseTtl(word);
      if (seconds !== undefined && ttl === undefined) ttl = seconds;
      else if (/^(IN|CH|HS)$/i.test(word) && dnsClass === undefined) dnsClass = word.toUpperCase();
      else if (words.length === 0) break;
      else if (dnsClass === undefined || dnsClass === "IN")
        return { ttl: ttl ?? this.#ttl, type: word.toUpperCase() };
      else throw dnsErrors.importFault(line, `expected the class IN but received ${dnsClass}`);
    }
    throw dnsErrors.importFault(line, "expected [ttl] [class] type value but the line ends");
  }

  #content(type: string, words: readonly string[]): string {
    if (type === "TXT")
      return words
        .map((word) => (word.startsWith('"') ? word : `"${word.replaceAll('"', '\\"')}"`))
        .join(" ");
    return words.map((word, index) => (hostWords[type] === index ? this.#absolute(word) : word)).join(" ");
  }

  /** An absolute name with its final dot. */
  #absolute(name: string): string {
    if (name === "@") return this.#origin;
    const lower = name.toLowerCase();
    if (lower.endsWith(".")) return lower;
    return this.#origin === "." ? `${lower}.` : `${lower}.${this.#origin}`;
  }
}

const skippedBecause = {
  SOA: "the zone makes its own SOA, with the values of its DNS settings",
  NS: "the zone has its own name servers, and answers with those",
};

/** The index of the word in a type's value that is a host name, and therefore relative to the origin. */
const hostWords: Readonly<Record<string, number>> = {
  CNAME: 0,
  NS: 0,
  PTR: 0,
  MX: 1,
  SRV: 3,
  HTTPS: 1,
  SVCB: 1,
  NAPTR: 5,
};

const units: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };

/** The seconds in "300", or in BIND's form "1h30m". */
function parseTtl(word: string): number | undefined {
  if (/^\d{1,10}$/.test(word)) return Number(word);
  if (!/^(\d{1,6}[smhdw])+$/i.test(word)) return undefined;
  const parts = [...word.matchAll(/(\d{1,6})([smhdw])/gi)];
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * units[unit!.toLowerCase()]!, 0);
}

import { isoTime } from "../util/ids.ts";
import type { Zone } from "../zones/zone.ts";
import { dnsErrors } from "./errors.ts";
import type { DnsRecord, RecordInput } from "./record.ts";
import { parseHost } from "./types/host.ts";

const automaticTtlSeconds = 300;
const entriesMax = 200_000;
const generateMax = 65_536;

/** The zone as a BIND file. Comments and tags, and what is proxied, stand in a comment that `parseZoneFile` reads back. */
export function printZoneFile(zone: Zone, records: readonly DnsRecord[]): string {
  const lines = [
    `;; Domain:     ${zone.name}.`,
    `;; Exported:   ${isoTime(Date.now())}`,
    `$ORIGIN ${zone.name}.`,
    "",
    `${zone.name}.\t3600\tIN\tSOA\t${zone.nameServers[0] ?? "ns.invalid"}. dns.${zone.name}. ${zone.serial} 10000 2400 604800 1800`,
    ...zone.nameServers.map((server) => `${zone.name}.\t86400\tIN\tNS\t${server}.`),
    "",
    ...records.map(printRecord),
  ];
  return `${lines.join("\n")}\n`;
}

function printRecord(record: DnsRecord): string {
  const ttl = record.ttl === 1 ? automaticTtlSeconds : record.ttl;
  const isProxiable = record.type === "A" || record.type === "AAAA" || record.type === "CNAME";
  // `cf_tags=` stands also where there are no tags, so that a comment is known from one that a person wrote.
  const tags = [...record.tags, ...(isProxiable ? [`cf-proxied:${record.proxied}`] : [])];
  const notes = [
    ...(record.comment === null ? [] : [record.comment]),
    `cf_tags=${tags.join(",").replaceAll(" ", "%20")}`,
  ];
  const comment = record.comment === null && tags.length === 0 ? "" : ` ; ${notes.join(" ")}`;
  return `${record.name}.\t${ttl}\tIN\t${record.type}\t${printValue(record)}${comment}`;
}

const dotted = (host: string): string => (host === "." ? "." : `${host}.`);
const lastWordDotted = (content: string, index: number): string =>
  content
    .split(" ")
    .map((word, at) => (at === index ? dotted(word) : word))
    .join(" ");

function printValue({ type, content, priority }: DnsRecord): string {
  switch (type) {
    case "CNAME":
    case "NS":
    case "PTR":
      return dotted(content);
    case "MX":
      return `${priority} ${dotted(content)}`;
    case "SRV":
      return `${priority} ${lastWordDotted(content, 2)}`;
    case "URI":
      return `${priority} ${content}`;
    case "NAPTR":
      return `${content.slice(0, content.lastIndexOf(" ") + 1)}${dotted(content.slice(content.lastIndexOf(" ") + 1))}`;
    case "HTTPS":
    case "SVCB":
      return lastWordDotted(content, 1);
    default:
      return content;
  }
}

/** One entry of a zone file: its words on the way to a record, and the line where it begins. */
interface Entry {
  line: number;
  words: string[];
  isIndented: boolean;
  comment: string;
}

/** Reads a BIND file into records for the API. Throws, naming the line, when any of it is wrong. */
export function parseZoneFile(
  text: string,
  zoneName: string,
  proxiedByDefault: boolean,
): { line: number; record: RecordInput }[] {
  const records: { line: number; record: RecordInput }[] = [];
  let origin = zoneName;
  let defaultTtl: number | undefined;
  let owner = zoneName;
  for (const entry of entries(text)) {
    const { line, words } = entry;
    const [first = ""] = words;
    if (first === "$ORIGIN") {
      const name = parseHost(words[1] ?? "", { underscore: true });
      if (name === undefined)
        throw dnsErrors.importFault(
          line,
          `expected a name after $ORIGIN but received ${JSON.stringify(words[1] ?? "")}`,
        );
      origin = words[1]!.endsWith(".") ? name : `${name}.${origin}`;
    } else if (first === "$TTL") {
      defaultTtl = parseTtl(words[1] ?? "");
      if (defaultTtl === undefined)
        throw dnsErrors.importFault(
          line,
          `expected seconds after $TTL but received ${JSON.stringify(words[1] ?? "")}`,
        );
    } else if (first === "$INCLUDE") {
      throw dnsErrors.importFault(line, "$INCLUDE directive not allowed");
    } else if (first === "$GENERATE") {
      for (const generated of generate(entry)) add(generated);
    } else if (first.startsWith("$")) {
      throw dnsErrors.importFault(line, `unknown directive ${first}`);
    } else {
      add(entry);
    }
    if (records.length > entriesMax)
      throw dnsErrors.importFault(line, `expected at most ${entriesMax} records`);
  }
  return records;

  function add(entry: Entry): void {
    const words = [...entry.words];
    if (!entry.isIndented) owner = absolute(words.shift()!, origin);
    let ttl = defaultTtl;
    for (;;) {
      const seconds = parseTtl(words[0] ?? "");
      if (/^(IN|CH|HS)$/i.test(words[0] ?? "")) {
        if (!/^IN$/i.test(words[0]!))
          throw dnsErrors.importFault(entry.line, `expected the class IN but received ${words[0]}`);
      } else if (seconds === undefined) break;
      else ttl = seconds;
      words.shift();
    }
    const type = words.shift()?.toUpperCase();
    if (type === undefined)
      throw dnsErrors.importFault(entry.line, "expected a record type but the line ends");
    // The SOA, and the name servers at the apex, are the platform's own.
    if (type === "SOA" || (type === "NS" && owner === zoneName)) return;
    const notes = parseNotes(entry.comment);
    const proxiable = type === "A" || type === "AAAA" || type === "CNAME";
    const proxied = proxiable && (notes.proxied ?? proxiedByDefault);
    records.push({
      line: entry.line,
      record: {
        type,
        name: owner,
        content: withAbsoluteTarget(type, words, origin),
        ttl: proxied || ttl === undefined ? 1 : ttl,
        proxied,
        ...(notes.comment === "" ? {} : { comment: notes.comment }),
        ...(notes.tags.length === 0 ? {} : { tags: notes.tags }),
      },
    });
  }
}

/** Splits a file into entries: parentheses join lines, quotes keep blanks and semicolons, a semicolon begins a comment. */
function* entries(text: string): Generator<Entry> {
  let open: Entry | undefined;
  let depth = 0;
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = index + 1;
    const entry: Entry = open ?? { line, words: [], isIndented: /^[ \t]/.test(raw), comment: "" };
    const pattern = /[ \t]*(?:(;.*)|([()])|("(?:[^"\\]|\\.)*")|((?:[^\s;()"\\]|\\.)+))/suy;
    const end = raw.trimEnd().length;
    while (pattern.lastIndex < end) {
      const match = pattern.exec(raw);
      if (match === null) throw dnsErrors.importFault(line, "a quote is not closed");
      const [, comment, parenthesis, quoted, word] = match;
      if (comment !== undefined) entry.comment = comment.slice(1).trim();
      else if (parenthesis === "(") depth += 1;
      else if (parenthesis === ")") depth -= 1;
      else entry.words.push(quoted ?? word!);
      if (depth < 0) throw dnsErrors.importFault(line, "a parenthesis is closed that was not opened");
    }
    open = depth > 0 ? entry : undefined;
    if (depth === 0 && entry.words.length > 0) yield entry;
  }
  if (open !== undefined) throw dnsErrors.importFault(open.line, "a parenthesis is not closed");
}

/** `$GENERATE 1-3 h$ A 192.0.2.$`: one entry for each number; `${offset,width,base}` shapes it. */
function* generate({ line, words }: Entry): Generator<Entry> {
  const range = /^(\d{1,9})-(\d{1,9})(?:\/(\d{1,9}))?$/.exec(words[1] ?? "");
  if (range === null || words.length < 5) {
    throw dnsErrors.importFault(line, "expected $GENERATE start-stop[/step] owner [ttl] [class] type value");
  }
  const [start, stop, step] = [Number(range[1]), Number(range[2]), Number(range[3] ?? 1)];
  if (step === 0 || (stop - start) / step > generateMax)
    throw dnsErrors.importFault(line, `expected at most ${generateMax} records from $GENERATE`);
  for (let number = start; number <= stop; number += step) {
    yield {
      line,
      isIndented: false,
      comment: "",
      words: words.slice(2).map((word) => substitute(word, number)),
    };
  }
}

const substitute = (word: string, number: number): string =>
  word.replace(
    /\\\$|\$(?:\{(-?\d+)(?:,(\d{1,2})(?:,([doxX]))?)?\})?/g,
    (match, offset?: string, width?: string, base?: string) => {
      if (match === "\\$") return "$";
      const value = number + Number(offset ?? 0);
      const digits = value
        .toString(base === "o" ? 8 : base === "x" || base === "X" ? 16 : 10)
        .padStart(Number(width ?? 0), "0");
      return base === "X" ? digits.toUpperCase() : digits;
    },
  );

/** "300", or "1h30m" as BIND also writes it. */
function parseTtl(word: string): number | undefined {
  if (/^\d{1,10}$/.test(word)) return Number(word);
  if (!/^(\d{1,6}[smhdw])+$/i.test(word)) return undefined;
  const units: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };
  return [...word.matchAll(/(\d+)([smhdw])/gi)].reduce(
    (sum, [, n, unit]) => sum + Number(n) * units[unit!.toLowerCase()]!,
    0,
  );
}

const absolute = (name: string, origin: string): string =>
  name === "@"
    ? origin
    : name.endsWith(".") && name !== "."
      ? name.slice(0, -1).toLowerCase()
      : `${name.toLowerCase()}.${origin}`;
const absoluteHost = (name: string, origin: string): string =>
  name === "." ? "." : `${absolute(name, origin)}.`;

/** Which word of a type's value is a host name, and so relative to the origin. */
const hostWords: Record<string, number> = {
  CNAME: 0,
  NS: 0,
  PTR: 0,
  MX: 1,
  SRV: 3,
  HTTPS: 1,
  SVCB: 1,
  NAPTR: 5,
};

const withAbsoluteTarget = (type: string, words: readonly string[], origin: string): string =>
  words.map((word, index) => (hostWords[type] === index ? absoluteHost(word, origin) : word)).join(" ");

/** What an export writes after a record: a free comment, then `cf_tags=` with tags, `cf-proxied` among them. */
function parseNotes(text: string): { comment: string; tags: string[]; proxied: boolean | undefined } {
  const match = /^(.*?)\s*\bcf_tags=(\S*)\s*$/s.exec(text);
  if (match === null) return { comment: "", tags: [], proxied: undefined };
  const tags = match[2]!
    .split(",")
    .filter((tag) => tag !== "")
    .map((tag) => tag.replaceAll("%20", " "));
  const flag = tags.find((tag) => tag.startsWith("cf-proxied:"));
  return {
    comment: match[1]!,
    tags: tags.filter((tag) => !tag.startsWith("cf-proxied:")),
    proxied: flag === undefined ? undefined : flag === "cf-proxied:true",
  };
}

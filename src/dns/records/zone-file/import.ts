import type { Plan } from "../../../control/zones/plans.ts";
import { DomainError, DomainErrors } from "../../../platform/domain-error.ts";
import type { Sliced } from "../../../platform/timers/slices.ts";
import { inFile } from "../errors.ts";
import { automaticTtl, parseRecord, ttlMax, type RecordFields } from "../record.ts";
import type { Notes } from "./notes.ts";
import { parseZoneFile, type FileRecord, type ParsedFile, type SkippedLine } from "./parse.ts";

const noticesMax = 20;

/** The attributes of a record that a line has beside the value. The zone's record keeps the others. */
export type Said = Partial<Pick<RecordFields, "ttl" | "proxied" | "settings" | "comment" | "tags">>;

/** A valid line of a file. `fields` is the record that it makes if the zone does not have it. */
export interface ImportEntry {
  line: number;
  fields: RecordFields;
  said: Said;
}

/** The records of a file. */
export interface Import {
  entries: ImportEntry[];
  /** Messages about values that the import changed. */
  notices: string[];
}

/** The valid records of a file, and its other lines. */
export interface Lines extends Import {
  refused: { line: number; message: string }[];
  skipped: SkippedLine[];
}

/**
 * The records of a BIND file, validated for a zone with this name and plan. Throws a DomainError with the line
 * if one is invalid.
 */
export function* readImport(
  text: string,
  zoneName: string,
  plan: Plan,
  proxiedByDefault: boolean,
): Sliced<Import> {
  const { records } = yield* parseZoneFile(text, zoneName, proxiedByDefault);
  return yield* readEntries(records, zoneName, plan, (error, line) => {
    throw inFile(error, line);
  });
}

/** Like `readImport`, but collects all refused lines. After a syntax error, only that line is reported. */
export function* readLines(
  text: string,
  zoneName: string,
  plan: Plan,
  proxiedByDefault: boolean,
): Sliced<Lines> {
  const refused: Lines["refused"] = [];
  let parsed: ParsedFile;
  try {
    parsed = yield* parseZoneFile(text, zoneName, proxiedByDefault);
  } catch (error) {
    const message = messageOf(error);
    const line = Number(/\bline (\d+)/i.exec(message)?.[1] ?? 0);
    return { entries: [], notices: [], refused: [{ line, message }], skipped: [] };
  }
  const read = yield* readEntries(parsed.records, zoneName, plan, (error, line) => {
    refused.push({ line, message: messageOf(error) });
  });
  return { ...read, refused, skipped: parsed.skipped };
}

/** Rethrows an error that is not about a record. */
export function messageOf(error: unknown): string {
  if (error instanceof DomainError || error instanceof DomainErrors) return error.message;
  throw error;
}

function* readEntries(
  parsed: readonly FileRecord[],
  zoneName: string,
  plan: Plan,
  onRefusal: (error: unknown, line: number) => void,
): Sliced<Import> {
  const notices: string[] = [];
  const entries: ImportEntry[] = [];
  for (const { line, record, notes } of parsed) {
    yield;
    const given = record.ttl ?? automaticTtl;
    const ttl = given === automaticTtl ? given : Math.min(Math.max(given, plan.dnsTtlMin), ttlMax);
    if (ttl !== given && record.proxied !== true)
      notices.push(`line ${line}: the TTL ${given} became ${ttl}`);
    try {
      const fields = parseRecord({ ...record, ttl }, zoneName, plan);
      const said = { ...(record.ttl === undefined ? {} : { ttl }), ...saidBy(notes, fields) };
      entries.push({ line, fields, said });
    } catch (error) {
      onRefusal(error, line);
    }
  }
  return { entries, notices: atMost(notices) };
}

function saidBy(notes: Notes | undefined, { proxied, settings, comment, tags }: RecordFields): Said {
  if (notes === undefined) return {};
  return { settings, comment, tags, ...(notes.proxied === undefined ? {} : { proxied }) };
}

/** The first messages about lines, and the number of the others. */
export function atMost(notices: readonly string[]): string[] {
  const rest = notices.length - noticesMax;
  return rest > 0 ? [...notices.slice(0, noticesMax), `and ${rest} more lines`] : [...notices];
}

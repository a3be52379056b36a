import type { Sliced } from "../../../platform/timers/slices.ts";
import type { Draft } from "../draft.ts";
import { automaticTtl, type DnsRecord, type RecordFields } from "../record.ts";
import type { ImportEntry, Said } from "./import.ts";

/** A line of a file that is not imported, and the reason. */
interface LeftOut {
  line: number;
  message: string;
}

/** The effect of an import, line by line. */
export interface ImportPlan {
  added: { line: number; fields: RecordFields }[];
  /** Records of the zone of which lines say another TTL or other attributes. */
  changed: { line: number; record: DnsRecord; fields: RecordFields }[];
  same: number;
  refused: LeftOut[];
  /** Lines about a record that an earlier line has too, with other attributes. */
  skipped: LeftOut[];
}

interface ImportOptions {
  /** Whether records of the zone get what the lines say. Otherwise they stay as they are. */
  isUpdate: boolean;
  /** Takes the reason why a line is refused, or throws it. */
  refuse: (error: unknown, line: number) => string;
}

/**
 * Makes the changes of an import in the draft. A dry run and an import share it, so that the one shows what the other does.
 * Records that the zone has come first: a new one may be allowed only beside a changed one.
 */
export function* planImport(
  draft: Draft,
  entries: readonly ImportEntry[],
  { isUpdate, refuse }: ImportOptions,
): Sliced<ImportPlan> {
  const plan: ImportPlan = { added: [], changed: [], same: 0, refused: [], skipped: [] };
  /** The lines about records, by their ids, and the records after the import. */
  const named = new Map<string, { line: number; fields: RecordFields }>();
  const added: ImportEntry[] = [];
  const attempt = (line: number, change: () => void): void => {
    try {
      change();
    } catch (error) {
      plan.refused.push({ line, message: refuse(error, line) });
    }
  };
  for (const entry of entries) {
    yield;
    const { line, said } = entry;
    const record = draft.findSame(entry.fields);
    if (record === undefined) added.push(entry);
    else if (!isAgain(entry, named.get(record.id), plan)) {
      const fields = changedBy(said, record);
      named.set(record.id, { line, fields });
      if (isAlike(record, fields)) plan.same++;
      else
        attempt(line, () => {
          if (isUpdate) draft.update(record, fields);
          plan.changed.push({ line, record, fields });
        });
    }
  }
  for (const entry of added) {
    yield;
    const { line, fields } = entry;
    const record = draft.findSame(fields);
    if (record === undefined)
      attempt(line, () => {
        named.set(draft.insert(fields).id, entry);
        plan.added.push({ line, fields });
      });
    else isAgain(entry, named.get(record.id), plan);
  }
  plan.skipped.sort(byLine);
  return plan;
}

/** Whether an earlier line is about the same record. Then this one changes nothing, and is counted. */
function isAgain(
  { line, said }: ImportEntry,
  earlier: { line: number; fields: RecordFields } | undefined,
  plan: ImportPlan,
): boolean {
  if (earlier === undefined) return false;
  if (isAlike(earlier.fields, changedBy(said, earlier.fields))) plan.same++;
  else {
    const message = `line ${earlier.line} has this record with another TTL or other attributes, and holds`;
    plan.skipped.push({ line, message });
  }
  return true;
}

/** The record with the attributes that a line says. A proxied record has the automatic TTL. */
function changedBy(said: Said, record: RecordFields): RecordFields {
  const { type, name, content, data, priority, ttl, proxied, settings, comment, tags } = {
    ...record,
    ...said,
  };
  const own = { type, name, content, data, priority, settings, comment, tags, proxied };
  return { ...own, ttl: proxied ? automaticTtl : ttl };
}

const compared = ["ttl", "proxied", "settings", "comment", "tags"] as const;
const isAlike = (record: RecordFields, fields: RecordFields): boolean =>
  compared.every((name) => JSON.stringify(record[name]) === JSON.stringify(fields[name]));

/** The order of the file. */
export const byLine = (a: LeftOut, b: LeftOut): number => a.line - b.line;

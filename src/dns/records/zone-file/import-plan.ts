import type { Plan } from "../../../control/zones/plans.ts";
import type { Sliced } from "../../../platform/timers/slices.ts";
import type { Draft } from "../draft.ts";
import type { DnsRecord, RecordFields } from "../record.ts";
import { messageOf, type Lines } from "./import.ts";

/** The effect of an import, line by line. */
export interface ImportPlan {
  added: { line: number; fields: RecordFields }[];
  /** Records that the zone has with another TTL or other attributes. An import leaves them unchanged. */
  changed: { line: number; record: DnsRecord; fields: RecordFields }[];
  same: number;
  refused: { line: number; message: string }[];
  /** Records that the zone has by itself. */
  skipped: { line: number; message: string }[];
}

/** Compares a file with the `count` records of a zone. Inserts into the draft, which is not written. */
export function* planImport(draft: Draft, lines: Lines, count: number, plan: Plan): Sliced<ImportPlan> {
  const { entries, refused, skipped } = lines;
  const planned: ImportPlan = { added: [], changed: [], same: 0, refused: [...refused], skipped };
  for (const { line, fields } of entries) {
    yield;
    const present = draft.findSame(fields);
    if (present !== undefined) {
      if (isAlike(present, fields)) planned.same++;
      else planned.changed.push({ line, record: present, fields });
      continue;
    }
    try {
      draft.insert(fields);
      planned.added.push({ line, fields });
    } catch (error) {
      planned.refused.push({ line, message: messageOf(error) });
    }
  }
  const countMax = plan.dnsRecordsMax - count;
  for (const { line } of planned.added.splice(Math.max(0, countMax)))
    planned.refused.push({ line, message: `The zone's plan allows ${plan.dnsRecordsMax} records` });
  return planned;
}

const compared = ["ttl", "proxied", "settings", "comment", "tags"] as const;
const isAlike = (record: RecordFields, fields: RecordFields): boolean =>
  compared.every((name) => JSON.stringify(record[name]) === JSON.stringify(fields[name]));

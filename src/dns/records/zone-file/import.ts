import type { Plan } from "../../../control/zones/plans.ts";
import { inFile } from "../errors.ts";
import { automaticTtl, parseRecord, ttlMax, type RecordFields } from "../record.ts";
import { parseZoneFile } from "./parse.ts";

const noticesMax = 20;

export interface Import {
  entries: { line: number; fields: RecordFields }[];
  /** Messages about values that the import changed. */
  notices: string[];
}

/**
 * The records of a BIND file, validated for a zone with this name and plan. Throws a DomainError with the line
 * if one is invalid.
 */
export function readImport(text: string, zoneName: string, plan: Plan, proxiedByDefault: boolean): Import {
  const notices: string[] = [];
  const entries = parseZoneFile(text, zoneName, proxiedByDefault).map(({ line, record }) => {
    const given = record.ttl ?? automaticTtl;
    const ttl = given === automaticTtl ? given : Math.min(Math.max(given, plan.dnsTtlMin), ttlMax);
    if (ttl !== given && record.proxied !== true)
      notices.push(`line ${line}: the TTL ${given} became ${ttl}`);
    try {
      return { line, fields: parseRecord({ ...record, ttl }, zoneName, plan) };
    } catch (error) {
      throw inFile(error, line);
    }
  });
  const rest = notices.length - noticesMax;
  if (rest > 0) notices.splice(noticesMax, rest, `and ${rest} more lines`);
  return { entries, notices };
}

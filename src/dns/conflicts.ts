import { dnsErrors } from "./errors.ts";
import type { RecordFields } from "./record.ts";
import { textLength } from "./types/text.ts";

const addressTypes: ReadonlySet<string> = new Set(["A", "AAAA"]);
/** What RFC 4035 lets stand beside a CNAME. */
const besideCname: ReadonlySet<string> = new Set(["DS", "DNSKEY"]);
const textLengthMax = 8192;
/** A set of records must fit into one answer of 64 KiB. */
const recordsMax = 1000;

/**
 * Throws when a record cannot stand beside the others of its name. `others` are the records that have the name after
 * the change, without the record itself.
 */
export function refuseConflicts(
  record: RecordFields,
  others: readonly RecordFields[],
  zoneName: string,
): void {
  if (others.some((other) => isSameRecord(record, other))) throw dnsErrors.identical();
  if (others.length >= recordsMax) throw dnsErrors.nameFull(recordsMax);
  if (record.type === "CNAME") refuseBesideCname(record, others, zoneName);
  else refuseCname(record, others, zoneName);
  if (record.type === "MX") refuseNullMx(record, others);
  if (record.type === "TXT") refuseMuchText(record, others);
}

/** What a new CNAME finds at its name. */
function refuseBesideCname(cname: RecordFields, others: readonly RecordFields[], zoneName: string): void {
  if (others.some(({ type }) => addressTypes.has(type) || type === "CNAME"))
    throw dnsErrors.addressConflict();
  // The name servers of the apex are of the zone; below it they give the name away.
  if (cname.name !== zoneName && others.some(({ type }) => type === "NS")) {
    throw dnsErrors.delegationConflict();
  }
  if (isAnsweredAsAddress(cname, zoneName)) return;
  const other = others.find(({ type }) => !besideCname.has(type));
  if (other !== undefined) throw dnsErrors.otherConflict(other.type);
}

/** Whether a CNAME bars the name for another type. */
function refuseCname(record: RecordFields, others: readonly RecordFields[], zoneName: string): void {
  const cname = others.find(({ type }) => type === "CNAME");
  if (cname === undefined || besideCname.has(record.type)) return;
  const isBarred =
    addressTypes.has(record.type) ||
    (record.type === "NS" && record.name !== zoneName) ||
    !isAnsweredAsAddress(cname, zoneName);
  if (isBarred) throw dnsErrors.cnameConflict();
}

/** A proxied or flattened CNAME is never seen as a CNAME, so other types may stand beside it. */
const isAnsweredAsAddress = (cname: RecordFields, zoneName: string): boolean =>
  cname.proxied || cname.name === zoneName || cname.settings.flatten_cname === true;

/** RFC 7505: the null MX stands alone. */
function refuseNullMx(record: RecordFields, others: readonly RecordFields[]): void {
  const exchanges = others.filter(({ type }) => type === "MX");
  if (exchanges.length > 0 && [record, ...exchanges].some(({ content }) => content === ".")) {
    throw dnsErrors.nullMx();
  }
}

function refuseMuchText(record: RecordFields, others: readonly RecordFields[]): void {
  const texts = [record, ...others.filter(({ type }) => type === "TXT")];
  const length = texts.reduce((sum, { content }) => sum + textLength(content), 0);
  if (length > textLengthMax) throw dnsErrors.textTooLong(textLengthMax, length);
}

/** Whether two records of one name answer the same. */
export const isSameRecord = (a: RecordFields, b: RecordFields): boolean =>
  a.type === b.type && a.content === b.content && a.priority === b.priority;

import { DomainErrors } from "../../platform/domain-error.ts";
import { dnsErrors } from "./errors.ts";
import type { RecordFields } from "./record.ts";
import { textLength } from "./types/text.ts";

const addressTypes: ReadonlySet<string> = new Set(["A", "AAAA"]);
/** Types that RFC 4035 allows beside a CNAME. */
const besideCname: ReadonlySet<string> = new Set(["DS", "DNSKEY"]);
const textLengthMax = 8192;
/** A set of records must fit into one answer of 64 KiB. */
const recordsMax = 1000;

/**
 * Throws if a record conflicts with the others at its name. `others` has the records with that name after the
 * change, without the record itself.
 */
export function refuseConflicts(
  record: RecordFields,
  others: readonly RecordFields[],
  zoneName: string,
): void {
  if (others.some((other) => isSameRecord(record, other))) {
    throw new DomainErrors([dnsErrors.identical(), dnsErrors.exists()]);
  }
  if (others.length >= recordsMax) throw dnsErrors.nameFull(recordsMax);
  if (record.type === "CNAME") refuseBesideCname(record, others, zoneName);
  else refuseCname(record, others, zoneName);
  if (record.type === "MX") refuseNullMx(record, others);
  if (record.type === "TXT") refuseMuchText(record, others);
}

/** Throws if a CNAME conflicts with the other records at its name. */
function refuseBesideCname(cname: RecordFields, others: readonly RecordFields[], zoneName: string): void {
  if (others.some(({ type }) => addressTypes.has(type) || type === "CNAME"))
    throw dnsErrors.addressConflict();
  // At the apex NS records name the zone's own servers. Below it they delegate the name.
  if (cname.name !== zoneName && others.some(({ type }) => type === "NS")) {
    throw dnsErrors.delegationConflict();
  }
  if (isAnsweredAsAddress(cname, zoneName)) return;
  const other = others.find(({ type }) => !besideCname.has(type));
  if (other !== undefined) throw dnsErrors.otherConflict(other.type);
}

/** Throws if a CNAME at the name excludes the record's type. */
function refuseCname(record: RecordFields, others: readonly RecordFields[], zoneName: string): void {
  const cname = others.find(({ type }) => type === "CNAME");
  if (cname === undefined || besideCname.has(record.type)) return;
  const isBarred =
    addressTypes.has(record.type) ||
    (record.type === "NS" && record.name !== zoneName) ||
    !isAnsweredAsAddress(cname, zoneName);
  if (isBarred) throw dnsErrors.cnameConflict();
}

/**
 * Whether a CNAME is answered with addresses because it is proxied or flattened, which allows other types
 * beside it.
 */
const isAnsweredAsAddress = (cname: RecordFields, zoneName: string): boolean =>
  cname.proxied || cname.name === zoneName || cname.settings.flatten_cname === true;

/** Throws unless the null MX is alone (RFC 7505). */
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

/** Whether two records of one name have the same type and value. */
export const isSameRecord = (a: RecordFields, b: RecordFields): boolean =>
  a.type === b.type && a.content === b.content && a.priority === b.priority;

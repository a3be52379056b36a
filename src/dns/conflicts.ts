import { dnsErrors } from "./errors.ts";
import type { DnsRecord, RecordFields } from "./record.ts";

const addressTypes: ReadonlySet<string> = new Set(["A", "AAAA"]);
/** What RFC 4035 lets stand beside a CNAME. */
const besideCname: ReadonlySet<string> = new Set(["DS", "DNSKEY"]);
const textLengthMax = 8192;

/**
 * Throws when a record cannot stand beside the others of its name. `others` are the records that have the name after
 * the change, without the record itself.
 */
export function refuseConflicts(record: RecordFields, others: readonly DnsRecord[], zoneName: string): void {
  if (others.some((other) => isSameRecord(record, other))) throw dnsErrors.identical();
  if (record.type === "CNAME") {
    if (others.some((other) => addressTypes.has(other.type) || other.type === "CNAME"))
      throw dnsErrors.addressConflict();
    if (!isAnsweredAsAddress(record, zoneName) && others.some((other) => !besideCname.has(other.type))) {
      throw dnsErrors.otherConflict("CNAME");
    }
    return;
  }
  const cname = others.find((other) => other.type === "CNAME");
  if (cname !== undefined && addressTypes.has(record.type)) throw dnsErrors.cnameConflict();
  if (cname !== undefined && !besideCname.has(record.type) && !isAnsweredAsAddress(cname, zoneName))
    throw dnsErrors.cnameConflict();
  if (record.type === "MX") {
    const exchanges = others.filter((other) => other.type === "MX");
    if (exchanges.length > 0 && (record.content === "." || exchanges.some((other) => other.content === ".")))
      throw dnsErrors.nullMx();
  }
  if (record.type === "TXT") {
    const length = others.reduce(
      (sum, other) => sum + (other.type === "TXT" ? other.content.length : 0),
      record.content.length,
    );
    if (length > textLengthMax) throw dnsErrors.textTooLong(textLengthMax);
  }
}

/** A proxied or flattened CNAME is never seen as a CNAME, so other types may stand beside it. */
const isAnsweredAsAddress = (record: RecordFields, zoneName: string): boolean =>
  record.proxied || record.name === zoneName || record.settings.flatten_cname === true;

/** Whether two records answer the same. */
export const isSameRecord = (a: RecordFields, b: RecordFields): boolean =>
  a.type === b.type && a.content === b.content && a.priority === b.priority;

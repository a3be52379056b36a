import type { Zone } from "../../../control/zones/zone.ts";
import type { Sliced } from "../../../platform/timers/slices.ts";
import { isoTime } from "../../../platform/util/ids.ts";
import type { RecordFields } from "../record.ts";
import { printNotes } from "./notes.ts";

/**
 * The zone as a BIND file (RFC 1035 §5). Automatic TTLs are written as 1, as in the public API's files. The
 * SOA and the platform's name servers are included as information; an import ignores them.
 */
export function* printZoneFile(
  zone: Pick<Zone, "name" | "nameServers" | "serial">,
  records: readonly RecordFields[],
  nowMs: number,
): Sliced<string> {
  const apex = `${zone.name}.`;
  const [primary = "ns"] = zone.nameServers;
  const lines = [
    `;; Domain:     ${apex}`,
    `;; Exported:   ${isoTime(nowMs)}`,
    `;; TTL 1 means automatic. "cf_tags=" is followed by tags and by whether the record is proxied.`,
    `$ORIGIN ${apex}`,
    "",
    `${apex}\t3600\tIN\tSOA\t${primary}. dns.${apex} ${zone.serial} 10000 2400 604800 1800`,
    ...zone.nameServers.map((server) => `${apex}\t86400\tIN\tNS\t${server}.`),
    "",
  ];
  for (const record of records) {
    yield;
    lines.push(printRecord(record));
  }
  return `${lines.join("\n")}\n`;
}

const printRecord = (record: RecordFields): string =>
  `${record.name}.\t${record.ttl}\tIN\t${record.type}\t${printValue(record)} ${printNotes(record)}`;

const dotted = (host: string): string => (host === "." ? "." : `${host}.`);
const dottedWord = (content: string, index: number): string =>
  content
    .split(" ")
    .map((word, at) => (at === index ? dotted(word) : word))
    .join(" ");

/** The content with its priority, and with final dots on host names. */
export function printValue({ type, content, priority }: RecordFields): string {
  const prefix = priority === null ? "" : `${priority} `;
  switch (type) {
    case "CNAME":
    case "NS":
    case "PTR":
    case "MX":
      return prefix + dotted(content);
    case "SRV":
      return prefix + dottedWord(content, 2);
    case "HTTPS":
    case "SVCB":
      return dottedWord(content, 1);
    case "NAPTR": {
      const last = content.lastIndexOf(" ") + 1; // the regex may contain blanks
      return content.slice(0, last) + dotted(content.slice(last));
    }
    default:
      return prefix + content;
  }
}

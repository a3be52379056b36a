import { atOnce } from "../../../platform/timers/slices.ts";
import { printZoneFile } from "../../../dns/records/zone-file/print.ts";
import type { RecordFields } from "../../../dns/records/record.ts";
import type { Document } from "../document.ts";
import { fileNameFor } from "./names.ts";

/** A name of DNS that is also the name of a file. */
const plainPattern = /^(?!.*\.\.)[a-z0-9][a-z0-9._-]{0,200}[a-z0-9]$/;

/** A BIND file for each zone, by the name of the file. */
export function exportZoneFiles({ zones, resources }: Document, nowMs: number): Map<string, string> {
  const files = new Map<string, string>();
  for (const { name } of zones) {
    const records = resources
      .filter(({ product, zone }) => product === "dns_record" && zone === name)
      .map(({ value }) => value as unknown as RecordFields);
    const serial = Math.floor(nowMs / 1000);
    const file = plainPattern.test(name) ? `${name}.zone` : fileNameFor(name, ".zone");
    files.set(file, atOnce(printZoneFile({ name, nameServers: [], serial }, records, nowMs)));
  }
  return files;
}

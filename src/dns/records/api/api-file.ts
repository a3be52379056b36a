import { z } from "zod";
import { apiErrors } from "../../../control/api/errors.ts";
import { operationsFor } from "../../../control/api/operation.ts";
import { dnsErrorCodes } from "./api-errors.ts";
import { dnsEdit, dnsRead } from "../access.ts";
import { plans } from "../../../control/zones/plans.ts";
import { readImport } from "../zone-file/import.ts";
import { printZoneFile } from "../zone-file/print.ts";
import type { DnsRecords } from "../records.ts";
import { clock } from "../../../platform/timers/clock.ts";

/** The services that these operations use. */
interface Services {
  records: DnsRecords;
}

const { operation, rawOperation } = operationsFor<Services>(dnsErrorCodes);

const fileBytesMax = 32 * 1024 * 1024;

const exportRecords = rawOperation({
  id: "dns_record_export",
  method: "GET",
  path: "/zones/{zone_id}/dns_records/export",
  summary: "Export the zone as a BIND file",
  access: dnsRead,
  async handle({ zone, services }) {
    const { zone: current, records } = await services.records.export(zone);
    const file = printZoneFile(current, records, clock.now());
    return new Response(file, { headers: { "content-type": "text/plain; charset=utf-8" } });
  },
});

const importRecords = operation({
  id: "dns_record_import",
  method: "POST",
  path: "/zones/{zone_id}/dns_records/import",
  summary: "Import a BIND file. If any line is wrong, nothing is imported",
  access: dnsEdit,
  bodyBytesMax: fileBytesMax,
  bodyKind: "form",
  body: z.strictObject({
    // Some clients send the text as a plain field, others as a file.
    file: z.union([z.string(), z.instanceof(File)]),
    proxied: z.enum(["true", "false"]).default("false"),
  }),
  result: z.object({ recs_added: z.int(), total_records_parsed: z.int() }),
  async handle({ zone, body, services, messages }) {
    const text = typeof body.file === "string" ? body.file : await textOf(body.file);
    const { entries, notices } = readImport(text, zone.name, plans[zone.plan], body.proxied === "true");
    const added = await services.records.import(zone, entries);
    messages.push(...notices.map((message) => ({ code: 9902, message: `Zone file, ${message}` })));
    return { recs_added: added, total_records_parsed: entries.length };
  },
});

async function textOf(file: File): Promise<string> {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw apiErrors.invalid("Expected UTF-8 text for file but received invalid bytes", "/body/file");
  }
}

export const fileOperations = [exportRecords, importRecords];

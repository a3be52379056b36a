import { z } from "zod";
import { apiErrors } from "../../../control/api/errors.ts";
import { operationsFor } from "../../../control/api/operation.ts";
import { dnsErrorCodes } from "./api-errors.ts";
import { dnsEdit, dnsRead } from "../access.ts";
import { plans } from "../../../control/zones/plans.ts";
import { queryFlag } from "../../../control/api/pagination.ts";
import type { Zone } from "../../../control/zones/zone.ts";
import type { RecordFields } from "../record.ts";
import { recordResource, RecordSchema } from "../resource.ts";
import { readImport, readLines } from "../zone-file/import.ts";
import type { ImportPlan } from "../zone-file/import-plan.ts";
import { printZoneFile } from "../zone-file/print.ts";
import type { DnsRecords } from "../records.ts";
import { clock } from "../../../platform/timers/clock.ts";
import { inSlices } from "../../../platform/timers/slices.ts";

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
    const file = await inSlices(printZoneFile(current, records, clock.now()));
    return new Response(file, { headers: { "content-type": "text/plain; charset=utf-8" } });
  },
});

/** Lines of each kind in a diff. */
const linesMax = 10_000;
const FileRecordSchema = z.object({
  name: z.string(),
  type: z.string(),
  content: z.string(),
  priority: z.int().optional(),
  ttl: z.int(),
  proxied: z.boolean(),
  settings: z.record(z.string(), z.unknown()),
  comment: z.string().nullable(),
  tags: z.array(z.string()),
});
const LineSchema = z.object({ line: z.int(), message: z.string() });
const DiffSchema = z
  .object({
    added: z.array(z.object({ line: z.int(), record: FileRecordSchema })),
    changed: z.array(z.object({ line: z.int(), from: RecordSchema, to: FileRecordSchema })),
    refused: z.array(LineSchema),
    skipped: z.array(LineSchema).meta({ description: "SOA and name servers, which the zone has by itself" }),
    counts: z.object({
      added: z.int(),
      changed: z.int(),
      same: z.int(),
      refused: z.int(),
      skipped: z.int(),
    }),
  })
  .meta({
    id: "DnsImportDiff",
    description: `At most ${linesMax} lines of each kind. An import keeps changed records as they are`,
  });

const fileRecord = ({
  name,
  type,
  content,
  priority,
  ttl,
  proxied,
  settings,
  comment,
  tags,
}: RecordFields) => ({
  name,
  type,
  content,
  ...(priority === null ? {} : { priority }),
  ttl,
  proxied,
  settings: { ...settings },
  comment,
  tags: [...tags],
});

const diffResource = ({ added, changed, same, refused, skipped }: ImportPlan, zone: Zone) => ({
  added: added.slice(0, linesMax).map(({ line, fields }) => ({ line, record: fileRecord(fields) })),
  changed: changed.slice(0, linesMax).map(({ line, record, fields }) => ({
    line,
    from: recordResource(record, zone),
    to: fileRecord(fields),
  })),
  refused: refused.slice(0, linesMax),
  skipped: skipped.slice(0, linesMax),
  counts: {
    added: added.length,
    changed: changed.length,
    same,
    refused: refused.length,
    skipped: skipped.length,
  },
});

const importRecords = operation({
  id: "dns_record_import",
  method: "POST",
  path: "/zones/{zone_id}/dns_records/import",
  summary: "Import a BIND file. If any line is wrong, nothing is imported. With dry_run, compare it only",
  access: dnsEdit,
  bodyBytesMax: fileBytesMax,
  bodyKind: "form",
  body: z.strictObject({
    // Some clients send the text as a plain field, others as a file.
    file: z.union([z.string(), z.instanceof(File)]),
    proxied: z.enum(["true", "false"]).default("false"),
  }),
  query: z.strictObject({ dry_run: queryFlag.optional() }),
  result: z.object({
    recs_added: z.int(),
    total_records_parsed: z.int(),
    diff: DiffSchema.optional(),
  }),
  async handle({ zone, query, body, services, messages }) {
    const text = typeof body.file === "string" ? body.file : await textOf(body.file);
    if (query.dry_run === true) {
      const lines = await inSlices(readLines(text, zone.name, plans[zone.plan], body.proxied === "true"));
      const plan = await services.records.planImport(zone, lines);
      const parsed = plan.added.length + plan.changed.length + plan.same + plan.refused.length;
      return { recs_added: 0, total_records_parsed: parsed, diff: diffResource(plan, zone) };
    }
    const { entries, notices } = await inSlices(
      readImport(text, zone.name, plans[zone.plan], body.proxied === "true"),
    );
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

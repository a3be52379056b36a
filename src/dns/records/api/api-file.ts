import { z } from "zod";
import { expected } from "../../../control/api/if-match.ts";
import { apiErrors } from "../../../control/api/errors.ts";
import { operationsFor } from "../../../control/api/operation.ts";
import { dnsErrorCodes } from "./api-errors.ts";
import { dnsEdit, dnsRead } from "../access.ts";
import { plans } from "../../../control/zones/plans.ts";
import { queryFlag } from "../../../control/api/pagination.ts";
import type { Zone } from "../../../control/zones/zone.ts";
import type { RecordFields } from "../record.ts";
import { recordResource, RecordSchema } from "../resource.ts";
import { atMost, readImport, readLines } from "../zone-file/import.ts";
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
    skipped: z.array(LineSchema).meta({
      description:
        "SOA and name servers, which the zone has by itself, and lines about a record of an earlier line",
    }),
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
    description: `At most ${linesMax} lines of each kind. Only an import with update makes the changes of records that the zone has`,
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
  takesIfMatch: true,
  method: "POST",
  path: "/zones/{zone_id}/dns_records/import",
  summary:
    "Import a BIND file, if no line is wrong. With update, records of the zone get what it says of them. With dry_run, compare only",
  access: dnsEdit,
  isDry: (_body, { dry_run }) => dry_run === true,
  bodyBytesMax: fileBytesMax,
  bodyKind: "form",
  body: z.strictObject({
    // Some clients send the text as a plain field, others as a file.
    file: z.union([z.string(), z.instanceof(File)]),
    proxied: z
      .enum(["true", "false"])
      .default("false")
      .meta({ description: "for new records of which the file does not say it" }),
  }),
  query: z.strictObject({ dry_run: queryFlag.optional(), update: queryFlag.optional() }),
  result: z.object({
    recs_added: z.int(),
    recs_changed: z.int().optional().meta({ description: "with update" }),
    total_records_parsed: z.int(),
    diff: DiffSchema.optional(),
  }),
  async handle(call) {
    const { zone, query, body, services, messages, incoming } = call;
    const text = typeof body.file === "string" ? body.file : await textOf(body.file);
    const isUpdate = query.update === true;
    const isProxied = body.proxied === "true";
    const condition = expected(incoming);
    const options = { isUpdate, check: (serial: number) => condition(String(serial)) };
    if (query.dry_run === true) {
      const lines = await inSlices(readLines(text, zone.name, plans[zone.plan], isProxied));
      const plan = await services.records.planImport(zone, lines, options);
      call.etag = String(plan.serial);
      const parsed = lines.entries.length + lines.refused.length;
      const counts = {
        recs_added: 0,
        ...(isUpdate ? { recs_changed: 0 } : {}),
        total_records_parsed: parsed,
      };
      return { ...counts, diff: diffResource(plan, zone) };
    }
    const { entries, notices } = await inSlices(readImport(text, zone.name, plans[zone.plan], isProxied));
    const { added, changed, skipped } = await services.records.import(zone, entries, options);
    const left = skipped.map(({ line, message }) => `line ${line} was left out: ${message}`);
    for (const message of [...notices, ...atMost(left)])
      messages.push({ code: 9902, message: `Zone file, ${message}` });
    return {
      recs_added: added.length,
      ...(isUpdate ? { recs_changed: changed.length } : {}),
      total_records_parsed: entries.length,
    };
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

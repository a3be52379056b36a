import { z } from "zod";
import { apiErrors, ApiError } from "../api/errors.ts";
import { listOperation, operation, rawOperation, type Operation } from "../api/operation.ts";
import { isoTime } from "../util/ids.ts";
import { plans } from "../zones/plans.ts";
import { dnsErrors } from "./errors.ts";
import { recordFilter, RecordListQuery } from "./filter.ts";
import { isProxiable, parseRecord, type DnsRecord } from "./record.ts";
import { recordTypeNames } from "./types/index.ts";
import { parseZoneFile, printZoneFile } from "./zone-file.ts";

const TimeSchema = z.string().meta({ format: "date-time" });
const SettingsSchema = z.strictObject({
  ipv4_only: z.boolean().optional(),
  ipv6_only: z.boolean().optional(),
  flatten_cname: z.boolean().optional(),
});

const RecordSchema = z
  .object({
    id: z.string(),
    zone_id: z.string(),
    zone_name: z.string(),
    name: z.string(),
    type: z.enum(recordTypeNames),
    content: z.string(),
    data: z.record(z.string(), z.unknown()).optional(),
    priority: z.int().optional(),
    proxiable: z.boolean(),
    proxied: z.boolean(),
    ttl: z.int(),
    settings: SettingsSchema,
    meta: z.object({}),
    comment: z.string().nullable(),
    tags: z.array(z.string()),
    created_on: TimeSchema,
    modified_on: TimeSchema,
    comment_modified_on: TimeSchema.optional(),
    tags_modified_on: TimeSchema.optional(),
  })
  .meta({ id: "DnsRecord" });

const recordResource = (record: DnsRecord, zoneName: string): z.input<typeof RecordSchema> => ({
  id: record.id,
  zone_id: record.zoneId,
  zone_name: zoneName,
  name: record.name,
  type: record.type,
  content: record.content,
  ...(record.data === null ? {} : { data: record.data }),
  ...(record.priority === null ? {} : { priority: record.priority }),
  proxiable: isProxiable(record),
  proxied: record.proxied,
  ttl: record.ttl,
  settings: record.settings,
  meta: {},
  comment: record.comment,
  tags: record.tags,
  created_on: isoTime(record.createdOn),
  modified_on: isoTime(record.modifiedOn),
  ...(record.commentModifiedOn === null ? {} : { comment_modified_on: isoTime(record.commentModifiedOn) }),
  ...(record.tagsModifiedOn === null ? {} : { tags_modified_on: isoTime(record.tagsModifiedOn) }),
});

// Clients send back whole records that they have read: the computed fields are known, and of no effect.
const computed = {
  zone_id: z.unknown().optional(),
  zone_name: z.unknown().optional(),
  proxiable: z.unknown().optional(),
  meta: z.unknown().optional(),
  locked: z.unknown().optional(),
  created_on: z.unknown().optional(),
  modified_on: z.unknown().optional(),
  comment_modified_on: z.unknown().optional(),
  tags_modified_on: z.unknown().optional(),
};
const RecordInputSchema = z.strictObject({
  id: z.string().max(64).optional(),
  type: z.string().max(16),
  name: z.string().min(1).max(255),
  content: z.string().max(65_535).optional(),
  data: z.record(z.string().max(32), z.unknown()).optional(),
  priority: z.number().optional(),
  ttl: z.number().optional(),
  proxied: z.boolean().optional(),
  settings: SettingsSchema.optional(),
  comment: z.string().max(2000).nullish(),
  tags: z.array(z.string().max(200)).max(100).optional(),
  ...computed,
});
const RecordPatchSchema = RecordInputSchema.partial();
const id = { id: z.string().length(32) };

const read = { scope: "zone", permission: "dns_records:read" } as const;
const edit = { scope: "zone", permission: "dns_records:edit" } as const;
const records = "/zones/{zone_id}/dns_records";
const record = `${records}/{dns_record_id}`;
const mebibyte = 1024 * 1024;
const recordId = (params: Record<string, string>): string => params["dns_record_id"]!;

const listRecords = listOperation({
  id: "dns_record_list",
  method: "GET",
  path: records,
  summary: "List and filter a zone's records",
  access: read,
  query: RecordListQuery,
  result: RecordSchema,
  async handle({ zone, query, services }) {
    const found = await services.records.list(zone, recordFilter(query));
    const items = found.records.map((each) => recordResource(each, zone.name));
    return { items, page: query.page, perPage: query.per_page, totalCount: found.totalCount };
  },
});

const createRecord = operation({
  id: "dns_record_create",
  method: "POST",
  path: records,
  summary: "Create a record",
  access: edit,
  body: RecordInputSchema,
  result: RecordSchema,
  handle: async ({ zone, body, services }) =>
    recordResource(await services.records.create(zone, body), zone.name),
});

const getRecord = operation({
  id: "dns_record_get",
  method: "GET",
  path: record,
  summary: "Get a record",
  access: read,
  result: RecordSchema,
  handle: async ({ zone, params, services }) =>
    recordResource(await services.records.find(zone, recordId(params)), zone.name),
});

const replaceRecord = operation({
  id: "dns_record_replace",
  method: "PUT",
  path: record,
  summary: "Replace a record",
  access: edit,
  body: RecordInputSchema,
  result: RecordSchema,
  handle: async ({ zone, params, body, services }) =>
    recordResource(await services.records.replace(zone, recordId(params), body), zone.name),
});

const editRecord = operation({
  id: "dns_record_edit",
  method: "PATCH",
  path: record,
  summary: "Change parts of a record",
  access: edit,
  body: RecordPatchSchema,
  result: RecordSchema,
  handle: async ({ zone, params, body, services }) =>
    recordResource(await services.records.edit(zone, recordId(params), defined(body)), zone.name),
});

const deleteRecord = operation({
  id: "dns_record_delete",
  method: "DELETE",
  path: record,
  summary: "Delete a record",
  access: edit,
  result: z.object({ id: z.string() }),
  async handle({ zone, params, services }) {
    await services.records.delete(zone, recordId(params));
    return { id: recordId(params) };
  },
});

const RecordsSchema = z.array(RecordSchema).nullable();
const batchRecords = operation({
  id: "dns_record_batch",
  method: "POST",
  path: `${records}/batch`,
  summary: "Delete, patch, replace and create records in one transaction, in that order",
  access: edit,
  bodyBytesMax: 8 * mebibyte,
  body: z.strictObject({
    deletes: z.array(z.object(id)).optional(),
    patches: z.array(RecordPatchSchema.extend(id)).optional(),
    puts: z.array(RecordInputSchema.extend(id)).optional(),
    posts: z.array(RecordInputSchema).optional(),
  }),
  result: z.object({
    deletes: RecordsSchema,
    patches: RecordsSchema,
    puts: RecordsSchema,
    posts: RecordsSchema,
  }),
  async handle({ zone, body, services }) {
    const { deletes = [], patches = [], puts = [], posts = [] } = body;
    const limit = plans[zone.plan].dnsBatchOperationsMax;
    const size = deletes.length + patches.length + puts.length + posts.length;
    if (size > limit) throw dnsErrors.batchTooLarge(limit, size);
    const patched = patches.map((patch) => ({ ...defined(patch), id: patch.id }));
    const result = await services.records.batch(zone, { deletes, patches: patched, puts, posts });
    const shown = (given: unknown, changed: DnsRecord[]) =>
      given === undefined ? null : changed.map((each) => recordResource(each, zone.name));
    return {
      deletes: shown(body.deletes, result.deletes),
      patches: shown(body.patches, result.patches),
      puts: shown(body.puts, result.puts),
      posts: shown(body.posts, result.posts),
    };
  },
});

const exportRecords = rawOperation({
  id: "dns_record_export",
  method: "GET",
  path: `${records}/export`,
  summary: "Export the zone as a BIND file",
  access: read,
  async handle({ zone, services }) {
    const file = printZoneFile(zone, await services.records.listAll(zone));
    return new Response(file, { headers: { "content-type": "text/plain; charset=utf-8" } });
  },
});

const importRecords = operation({
  id: "dns_record_import",
  method: "POST",
  path: `${records}/import`,
  summary: "Import a BIND file; nothing is imported when any of it is wrong",
  access: edit,
  bodyBytesMax: 32 * mebibyte,
  bodyKind: "form",
  body: z.strictObject({
    file: z.union([z.string(), z.instanceof(File)]),
    proxied: z.enum(["true", "false"]).default("false"),
  }),
  result: z.object({ recs_added: z.int(), total_records_parsed: z.int() }),
  async handle({ zone, body, services }) {
    const text = typeof body.file === "string" ? body.file : await body.file.text();
    const parsed = parseZoneFile(text, zone.name, body.proxied === "true");
    const posts = parsed.map(({ line, record: each }) => {
      try {
        return { line, fields: parseRecord(each, zone.name, plans[zone.plan]) };
      } catch (error) {
        throw error instanceof ApiError ? dnsErrors.importFault(line, error.message) : error;
      }
    });
    const added = await services.records.import(zone, posts);
    return { recs_added: added, total_records_parsed: parsed.length };
  },
});

const scanTrigger = operation({
  id: "dns_record_scan_trigger",
  method: "POST",
  path: `${records}/scan/trigger`,
  summary: "Scan public name servers for records: not done here",
  access: edit,
  result: z.null(),
  handle: async () => {
    throw apiErrors.invalid(
      "Records are not scanned for: this platform asks no other name servers. Import a zone file instead",
    );
  },
});

const UsageSchema = z.object({ record_quota: z.int().nullable(), record_usage: z.int() });
const zoneUsage = operation({
  id: "dns_record_usage",
  method: "GET",
  path: `${records}/usage`,
  summary: "How many records the zone has, and may have",
  access: read,
  result: UsageSchema,
  handle: async ({ zone, services }) => ({
    record_quota: plans[zone.plan].dnsRecordsMax,
    record_usage: await services.records.count([zone]),
  }),
});
const accountUsage = operation({
  id: "dns_record_account_usage",
  method: "GET",
  path: "/accounts/{account_id}/dns_records/usage",
  summary: "How many records all zones of the account have",
  access: { scope: "account", permission: "account_settings:read" },
  result: UsageSchema,
  async handle({ account, services }) {
    const zones = services.zones.list().filter((zone) => zone.accountId === account.id);
    return { record_quota: null, record_usage: await services.records.count(zones) };
  },
});

/** Without the members that are undefined: in a patch they mean "as it is". */
function defined<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as never;
}

export const dnsOperations: readonly Operation[] = [
  listRecords,
  createRecord,
  getRecord,
  replaceRecord,
  editRecord,
  deleteRecord,
  batchRecords,
  exportRecords,
  importRecords,
  scanTrigger,
  zoneUsage,
  accountUsage,
];

import { z } from "zod";
import { expected } from "../../../control/api/if-match.ts";
import { operationsFor, type Call } from "../../../control/api/operation.ts";
import { dnsErrorCodes } from "./api-errors.ts";
import { dnsEdit, dnsRead } from "../access.ts";
import { fileOperations } from "./api-file.ts";
import { scanOperations } from "./api-scan.ts";
import { usageOperations } from "./api-usage.ts";
import { batchRecords } from "./api-batch.ts";
import { recordFilter, RecordListQuery } from "../filter.ts";
import {
  advice,
  inputOf,
  patchOf,
  RecordInputSchema,
  RecordPatchSchema,
  RecordReplacementSchema,
  recordResource,
  RecordSchema,
  shadowAdvice,
  ShadowQuery,
} from "../resource.ts";
import { dnsErrors } from "../errors.ts";
import type { DnsRecord } from "../record.ts";
import type { DnsRecords, RecordCheck } from "../records.ts";
import { isoTime } from "../../../platform/util/ids.ts";

/** The services that these operations use. */
interface Services {
  records: DnsRecords;
}

const { listOperation, operation } = operationsFor<Services>(dnsErrorCodes);

const records = "/zones/{zone_id}/dns_records";
const record = `${records}/{dns_record_id}`;

const recordId = (params: Record<string, string>): string => params["dns_record_id"]!;

/** The record's id. Throws if the body has a different id; clients may send the same one back. */
function ownId(params: Record<string, string>, body: { id?: string | undefined }): string {
  const id = recordId(params);
  if (body.id !== undefined && body.id !== id) throw dnsErrors.otherId(id, body.id);
  return id;
}

const listRecords = listOperation({
  id: "dns_record_list",
  method: "GET",
  path: records,
  summary: "List and filter a zone's records",
  access: dnsRead,
  query: RecordListQuery,
  result: RecordSchema,
  async handle({ zone, query, services, messages }) {
    const found = await services.records.list(zone, recordFilter(query, zone.name));
    messages.push(...shadowAdvice(query));
    const items = found.records.map((each) => recordResource(each, zone));
    return { items, page: query.page, perPage: query.per_page, totalCount: found.totalCount };
  },
});

/** The tag of a record's state: its `modified_on`, which increases with each change. */
const recordTag = ({ modifiedOn }: DnsRecord): string => isoTime(modifiedOn);

/** Checks the record before its change against If-Match, and gives it to the audit log. */
function seenRecord(call: Pick<Call<0, 0, Services>, "incoming" | "zone" | "before">): RecordCheck {
  const check = expected(call.incoming);
  return (current) => {
    check(recordTag(current));
    call.before = recordResource(current, call.zone);
  };
}

const createRecord = operation({
  id: "dns_record_create",
  method: "POST",
  path: records,
  summary: "Create a record",
  access: dnsEdit,
  query: ShadowQuery,
  body: RecordInputSchema,
  result: RecordSchema,
  async handle({ zone, query, body, services, messages }) {
    const input = inputOf(body);
    const created = await services.records.create(zone, input);
    messages.push(...advice(body, input, created, zone), ...shadowAdvice(query));
    return recordResource(created, zone);
  },
});

const getRecord = operation({
  id: "dns_record_get",
  method: "GET",
  path: record,
  summary: "Get a record",
  access: dnsRead,
  query: ShadowQuery,
  result: RecordSchema,
  async handle(call) {
    const { zone, params, query, services, messages } = call;
    messages.push(...shadowAdvice(query));
    const found = await services.records.find(zone, recordId(params));
    call.etag = recordTag(found);
    return recordResource(found, zone);
  },
});

const replaceRecord = operation({
  id: "dns_record_replace",
  takesIfMatch: true,
  method: "PUT",
  path: record,
  summary: "Replace a record",
  access: dnsEdit,
  query: ShadowQuery,
  body: RecordReplacementSchema,
  result: RecordSchema,
  before: RecordSchema,
  async handle(call) {
    const { zone, params, query, body, services, messages } = call;
    const id = ownId(params, body);
    const name = body.name ?? `${(await services.records.find(zone, id)).name}.`;
    const input = inputOf({ ...body, name });
    const replaced = await services.records.replace(zone, id, input, seenRecord(call));
    messages.push(...advice(body, input, replaced, zone), ...shadowAdvice(query));
    return recordResource(replaced, zone);
  },
});

const editRecord = operation({
  id: "dns_record_edit",
  takesIfMatch: true,
  method: "PATCH",
  path: record,
  summary: "Change parts of a record",
  access: dnsEdit,
  query: ShadowQuery,
  body: RecordPatchSchema,
  result: RecordSchema,
  before: RecordSchema,
  async handle(call) {
    const { zone, params, query, body, services, messages } = call;
    const patch = patchOf(body);
    const edited = await services.records.edit(zone, ownId(params, body), patch, seenRecord(call));
    messages.push(...advice(body, patch, edited, zone), ...shadowAdvice(query));
    return recordResource(edited, zone);
  },
});

const deleteRecord = operation({
  id: "dns_record_delete",
  takesIfMatch: true,
  method: "DELETE",
  path: record,
  summary: "Delete a record",
  access: dnsEdit,
  result: z.object({ id: z.string() }),
  before: RecordSchema,
  async handle(call) {
    const { zone, params, services } = call;
    await services.records.delete(zone, recordId(params), seenRecord(call));
    return { id: recordId(params) };
  },
});

export const dnsOperations = [
  listRecords,
  createRecord,
  getRecord,
  replaceRecord,
  editRecord,
  deleteRecord,
  batchRecords,
  ...fileOperations,
  ...scanOperations,
  ...usageOperations,
];

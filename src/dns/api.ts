import { z } from "zod";
import { listOperation, operation, type Operation } from "../api/operation.ts";
import { dnsEdit, dnsRead } from "./access.ts";
import { fileOperations } from "./api-file.ts";
import { scanOperations } from "./api-scan.ts";
import { usageOperations } from "./api-usage.ts";
import { batchRecords } from "./api-batch.ts";
import { recordFilter, RecordListQuery } from "./filter.ts";
import {
  advice,
  inputOf,
  patchOf,
  RecordInputSchema,
  RecordPatchSchema,
  recordResource,
  RecordSchema,
} from "./resource.ts";
import { dnsErrors } from "./errors.ts";

const records = "/zones/{zone_id}/dns_records";
const record = `${records}/{dns_record_id}`;

const recordId = (params: Record<string, string>): string => params["dns_record_id"]!;

/** A body may carry the record's own id, as a client has read it, but no other. */
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
  async handle({ zone, query, services }) {
    const found = await services.records.list(zone, recordFilter(query));
    const items = found.records.map((each) => recordResource(each, zone));
    return { items, page: query.page, perPage: query.per_page, totalCount: found.totalCount };
  },
});

const createRecord = operation({
  id: "dns_record_create",
  method: "POST",
  path: records,
  summary: "Create a record",
  access: dnsEdit,
  body: RecordInputSchema,
  result: RecordSchema,
  async handle({ zone, body, services, messages }) {
    const input = inputOf(body);
    const created = await services.records.create(zone, input);
    messages.push(...advice(input, created, zone));
    return recordResource(created, zone);
  },
});

const getRecord = operation({
  id: "dns_record_get",
  method: "GET",
  path: record,
  summary: "Get a record",
  access: dnsRead,
  result: RecordSchema,
  handle: async ({ zone, params, services }) =>
    recordResource(await services.records.find(zone, recordId(params)), zone),
});

const replaceRecord = operation({
  id: "dns_record_replace",
  method: "PUT",
  path: record,
  summary: "Replace a record",
  access: dnsEdit,
  body: RecordInputSchema,
  result: RecordSchema,
  async handle({ zone, params, body, services, messages }) {
    const input = inputOf(body);
    const replaced = await services.records.replace(zone, ownId(params, body), input);
    messages.push(...advice(input, replaced, zone));
    return recordResource(replaced, zone);
  },
});

const editRecord = operation({
  id: "dns_record_edit",
  method: "PATCH",
  path: record,
  summary: "Change parts of a record",
  access: dnsEdit,
  body: RecordPatchSchema,
  result: RecordSchema,
  async handle({ zone, params, body, services, messages }) {
    const patch = patchOf(body);
    const edited = await services.records.edit(zone, ownId(params, body), patch);
    messages.push(...advice(patch, edited, zone));
    return recordResource(edited, zone);
  },
});

const deleteRecord = operation({
  id: "dns_record_delete",
  method: "DELETE",
  path: record,
  summary: "Delete a record",
  access: dnsEdit,
  result: z.object({ id: z.string() }),
  async handle({ zone, params, services }) {
    await services.records.delete(zone, recordId(params));
    return { id: recordId(params) };
  },
});

export const dnsOperations: readonly Operation[] = [
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

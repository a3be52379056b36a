import { z } from "zod";
import type { Message } from "../api/envelope.ts";
import { apiErrors } from "../api/errors.ts";
import { listOperation, operation, type Operation } from "../api/operation.ts";
import { pageQuery, paginate } from "../api/pagination.ts";
import { dnsEdit, dnsRead } from "./access.ts";
import { RecordSchema } from "./resource.ts";

/** The public API asks other name servers for a zone's records. This platform asks none, and so finds none. */
const nothingFound: Message = {
  code: 9903,
  message:
    "No other name servers are asked for records, so none were found. A zone file can be imported instead",
};
const scan = "/zones/{zone_id}/dns_records/scan";

const scanRecords = operation({
  id: "dns_record_scan",
  method: "POST",
  path: scan,
  summary: "Scan other name servers for records: none are asked, so none are found",
  access: dnsEdit,
  body: z.strictObject({}),
  bodyOptional: true,
  result: z.object({ recs_added: z.int(), total_records_parsed: z.int() }),
  async handle({ messages }) {
    messages.push(nothingFound);
    return { recs_added: 0, total_records_parsed: 0 };
  },
});

const triggerScan = operation({
  id: "dns_record_scan_trigger",
  method: "POST",
  path: `${scan}/trigger`,
  summary: "Begin a scan of other name servers, whose finds are reviewed: there are none",
  access: dnsEdit,
  result: z.null(),
  async handle({ messages }) {
    messages.push(nothingFound);
    return null;
  },
});

const listScanned = listOperation({
  id: "dns_record_scan_list",
  method: "GET",
  path: `${scan}/review`,
  summary: "List what a scan has found: nothing",
  access: dnsRead,
  query: pageQuery({ default: 100, max: 5_000_000 }),
  result: RecordSchema,
  handle: async ({ query }) => paginate([], query),
});

const reviewScanned = operation({
  id: "dns_record_scan_review",
  method: "POST",
  path: `${scan}/review`,
  summary: "Accept or reject what a scan has found: there is nothing",
  access: dnsEdit,
  body: z.strictObject({
    accepts: z.array(z.unknown()).nullish(),
    rejects: z.array(z.object({ id: z.string() })).nullish(),
  }),
  bodyOptional: true,
  result: z.object({ accepts: z.array(RecordSchema), rejects: z.array(z.string()) }),
  async handle({ body, messages }) {
    for (const part of ["accepts", "rejects"] as const) {
      const count = body[part]?.length ?? 0;
      if (count > 0) {
        const expected = `Expected no records for ${part}, as no scan has found any, but received ${count}`;
        throw apiErrors.invalid(expected, `/body/${part}`);
      }
    }
    messages.push(nothingFound);
    return { accepts: [], rejects: [] };
  },
});

export const scanOperations: readonly Operation[] = [scanRecords, triggerScan, listScanned, reviewScanned];

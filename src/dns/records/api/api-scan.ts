import { z } from "zod";
import type { ApiMessage } from "../../../control/api/envelope.ts";
import { apiErrors } from "../../../control/api/errors.ts";
import { operationsFor } from "../../../control/api/operation.ts";
import { pageQuery, paginate } from "../../../control/api/pagination.ts";
import { dnsEdit, dnsRead } from "../access.ts";
import { RecordSchema } from "../resource.ts";

const { listOperation, operation } = operationsFor<object>();

/** The public API scans other name servers for a zone's records. This platform does not, so it finds none. */
const nothingFound: ApiMessage = {
  code: 9903,
  message:
    "This platform does not scan other name servers, so no records were found. Import a zone file instead",
};
/** Records that one review may name. */
const reviewedMax = 10_000;
const scan = "/zones/{zone_id}/dns_records/scan";

const scanRecords = operation({
  id: "dns_record_scan",
  audit: "none",
  method: "POST",
  path: scan,
  summary: "Scan other name servers for records, which finds none on this platform",
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
  audit: "none",
  method: "POST",
  path: `${scan}/trigger`,
  summary: "Begin a scan for review, which finds no records on this platform",
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
  summary: "List the records that a scan found: always none",
  access: dnsRead,
  query: pageQuery({ default: 100, max: 5_000_000 }),
  result: RecordSchema,
  handle: async ({ query }) => paginate([], query),
});

const reviewScanned = operation({
  id: "dns_record_scan_review",
  audit: "none",
  method: "POST",
  path: `${scan}/review`,
  summary: "Accept or reject records that a scan found, of which there are none",
  access: dnsEdit,
  body: z.strictObject({
    accepts: z.array(z.unknown()).max(reviewedMax).nullish(),
    rejects: z
      .array(z.object({ id: z.string() }))
      .max(reviewedMax)
      .nullish(),
  }),
  bodyOptional: true,
  result: z.object({ accepts: z.array(RecordSchema), rejects: z.array(z.string()) }),
  async handle({ body, messages }) {
    for (const part of ["accepts", "rejects"] as const) {
      const count = body[part]?.length ?? 0;
      if (count > 0) {
        const expected = `Expected no records for ${part}, because scans find none here, but received ${count}`;
        throw apiErrors.invalid(expected, `/body/${part}`);
      }
    }
    messages.push(nothingFound);
    return { accepts: [], rejects: [] };
  },
});

export const scanOperations = [scanRecords, triggerScan, listScanned, reviewScanned];

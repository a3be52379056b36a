import { z } from "zod";
import { operationsFor } from "../../../control/api/operation.ts";
import { dnsErrorCodes } from "./api-errors.ts";
import { dnsEdit } from "../access.ts";
import { plans } from "../../../control/zones/plans.ts";
import type { Zone } from "../../../control/zones/zone.ts";
import { dnsErrors } from "../errors.ts";
import type { DnsRecord } from "../record.ts";
import {
  advice,
  inputOf,
  patchOf,
  RecordInputSchema,
  RecordPatchSchema,
  recordResource,
  RecordSchema,
  shadowAdvice,
  ShadowQuery,
} from "../resource.ts";
import type { DnsRecords } from "../records.ts";

/** The services that these operations use. */
interface Services {
  records: DnsRecords;
}

const { operation } = operationsFor<Services>(dnsErrorCodes);

const bodyBytesMax = 8 * 1024 * 1024;
/** Above the limit of every plan, so that the plan's own error, which names its limit, applies first. */
const listedMax = 10_000;
const id = { id: z.string().length(32) };
const ShownSchema = z.array(RecordSchema).nullable();

export const batchRecords = operation({
  id: "dns_record_batch",
  method: "POST",
  path: "/zones/{zone_id}/dns_records/batch",
  summary: "Delete, patch, replace and create records in one transaction, in that order",
  access: dnsEdit,
  bodyBytesMax,
  query: ShadowQuery,
  body: z.strictObject({
    deletes: z.array(z.object(id)).max(listedMax).nullish(),
    patches: z.array(RecordPatchSchema.extend(id)).max(listedMax).nullish(),
    puts: z.array(RecordInputSchema.safeExtend(id)).max(listedMax).nullish(),
    posts: z.array(RecordInputSchema).max(listedMax).nullish(),
  }),
  result: z.object({ deletes: ShownSchema, patches: ShownSchema, puts: ShownSchema, posts: ShownSchema }),
  async handle({ zone, query, body, services, messages }) {
    const batch = {
      deletes: body.deletes ?? [],
      patches: (body.patches ?? []).map((each) => ({ ...patchOf(each), id: each.id })),
      puts: (body.puts ?? []).map((each) => ({ ...inputOf(each), id: each.id })),
      posts: (body.posts ?? []).map(inputOf),
    };
    const { deletes, patches, puts, posts } = batch;
    const size = deletes.length + patches.length + puts.length + posts.length;
    const limit = plans[zone.plan].dnsBatchOperationsMax;
    if (size > limit) throw dnsErrors.batchTooLarge(limit, size);
    const result = await services.records.batch(zone, batch);
    for (const part of ["patches", "puts", "posts"] as const) {
      batch[part].forEach((input, index) =>
        messages.push(...advice(body[part]![index]!, input, result[part][index]!, zone)),
      );
    }
    messages.push(...shadowAdvice(query));
    return {
      deletes: shown(body.deletes, result.deletes, zone),
      patches: shown(body.patches, result.patches, zone),
      puts: shown(body.puts, result.puts, zone),
      posts: shown(body.posts, result.posts, zone),
    };
  },
});

/** A part that is missing in the request is null in the result. */
const shown = (asked: unknown, records: readonly DnsRecord[], zone: Zone) =>
  asked === undefined || asked === null ? null : records.map((record) => recordResource(record, zone));

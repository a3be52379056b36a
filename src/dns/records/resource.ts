import { z } from "zod";
import type { ApiMessage } from "../../control/api/envelope.ts";
import { isoTime } from "../../platform/util/ids.ts";
import type { Zone } from "../../control/zones/zone.ts";
import { looksForeign } from "./name.ts";
import { isProxiable, type DnsRecord, type RecordInput } from "./record.ts";
import { recordTypeNames } from "./types/record-types.ts";
import { nameInData } from "./types/services.ts";

const TimeSchema = z.string().meta({ format: "date-time" });
const SettingsSchema = z.strictObject({
  ipv4_only: z.boolean().optional(),
  ipv6_only: z.boolean().optional(),
  flatten_cname: z.boolean().optional(),
});

export const RecordSchema = z
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

/** A record in the API, with the same fields in every response. */
export const recordResource = (record: DnsRecord, zone: Zone): z.input<typeof RecordSchema> => ({
  id: record.id,
  zone_id: record.zoneId,
  zone_name: zone.name,
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

// Clients send whole records back. Their computed fields are accepted and ignored.
const computed = z.unknown().optional();

const FieldsSchema = z.strictObject({
  id: z.string().max(64).optional(),
  type: z.string().max(16),
  name: z.string().max(255).nullish(),
  content: z.string().max(65_535).nullish(),
  data: z.record(z.string().max(32), z.unknown()).nullish(),
  priority: z.number().nullish(),
  ttl: z.number().nullish(),
  proxied: z.boolean().nullish(),
  settings: SettingsSchema.nullish(),
  comment: z.string().max(2000).nullish(),
  tags: z.array(z.string().max(200)).max(100).nullish(),
  /** Private routing is not supported. */
  private_routing: z.literal(false).optional(),
  zone_id: computed,
  zone_name: computed,
  proxiable: computed,
  meta: computed,
  locked: computed,
  created_on: computed,
  modified_on: computed,
  comment_modified_on: computed,
  tags_modified_on: computed,
  /** Apache Libcloud sends this with every update. */
  extra: computed,
});
export const RecordPatchSchema = FieldsSchema.partial();
/** Requires a name, except with the older form of an SRV record's data, which contains it. */
const needName = (isMissing: (name: unknown) => boolean) =>
  FieldsSchema.superRefine(({ name, data }, context) => {
    if (!isMissing(name) || nameInData(data) !== undefined) return;
    context.addIssue({ code: "invalid_type", expected: "string", path: ["name"], input: name });
  });
export const RecordInputSchema = needName((name) => name === undefined || name === null);
/** A null name leaves the name unchanged: Apache Libcloud sends null for the apex. */
export const RecordReplacementSchema = needName((name) => name === undefined);

type Given = z.output<typeof RecordPatchSchema>;

/**
 * The changes that a patch makes. Some clients send null for "no change", so only a null comment removes a
 * value.
 */
export function patchOf(given: Given): Partial<RecordInput> {
  const { type, content, data, priority, ttl, proxied, settings, comment, tags } = given;
  const name = nameInData(data) ?? given.name ?? undefined;
  const fields = { type, name, content, data, priority, ttl, proxied, settings, tags };
  const present = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
  return { ...Object.fromEntries(present), ...(comment === undefined ? {} : { comment }) };
}

/** Like `patchOf`, for a whole record. Its schema ensures the name. */
export const inputOf = (given: z.output<typeof RecordInputSchema>): RecordInput => ({
  ...patchOf(given),
  type: given.type,
  name: nameInData(given.data) ?? given.name!,
});

export const ShadowQuery = z.object({ include_shadow_metadata: z.enum(["true", "false"]).optional() });

/** The message for a query that asks for shadow metadata; empty otherwise. */
export const shadowAdvice = (query: z.output<typeof ShadowQuery>): ApiMessage[] =>
  query.include_shadow_metadata === "true"
    ? [
        {
          code: 9903,
          message: "include_shadow_metadata was ignored, because this platform has no shadow metadata",
        },
      ]
    : [];

/** Informational messages about a record that a client has written. */
export function advice(
  given: Given,
  input: Partial<RecordInput>,
  record: DnsRecord,
  zone: Zone,
): ApiMessage[] {
  const messages: ApiMessage[] = [];
  if (nameInData(given.data) !== undefined) {
    const message = `The public API no longer accepts data.service, data.proto and data.name in SRV records. Here they gave the name "${record.name}". Send that as name instead`;
    messages.push({ code: 9902, message });
  }
  if (given.extra !== undefined) {
    messages.push({ code: 9904, message: "extra was ignored, because records have no such field" });
  }
  if (input.name !== undefined && looksForeign(input.name, zone.name)) {
    const message = `The name "${input.name}" is not in the zone, so the record was created at "${record.name}"`;
    messages.push({ code: 9900, message });
  }
  if (input.priority !== undefined && record.priority === null) {
    messages.push({
      code: 9901,
      message: `The priority was ignored, because ${record.type} records have none`,
    });
  }
  return messages;
}

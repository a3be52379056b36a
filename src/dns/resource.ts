import { z } from "zod";
import type { Message } from "../api/envelope.ts";
import { isoTime } from "../util/ids.ts";
import type { Zone } from "../zones/zone.ts";
import { looksForeign } from "./name.ts";
import { isProxiable, type DnsRecord, type RecordInput } from "./record.ts";
import { recordTypeNames } from "./types/index.ts";

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

/** A record on the wire; the same members in the same form whatever the call that shows it. */
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

// Clients send back whole records that they have read: the computed fields are known, and of no effect.
const computed = z.unknown().optional();

export const RecordInputSchema = z.strictObject({
  id: z.string().max(64).optional(),
  type: z.string().max(16),
  name: z.string().min(1).max(255),
  content: z.string().max(65_535).nullish(),
  data: z.record(z.string().max(32), z.unknown()).nullish(),
  priority: z.number().nullish(),
  ttl: z.number().nullish(),
  proxied: z.boolean().nullish(),
  settings: SettingsSchema.nullish(),
  comment: z.string().max(2000).nullish(),
  tags: z.array(z.string().max(200)).max(100).nullish(),
  /** Records are not routed through private networks. */
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
});
export const RecordPatchSchema = RecordInputSchema.partial();

type Given = z.output<typeof RecordPatchSchema>;

/** What a patch says of a record. Null is how some clients write nothing; only a comment is taken away by it. */
export function patchOf(given: Given): Partial<RecordInput> {
  const { type, name, content, data, priority, ttl, proxied, settings, comment, tags } = given;
  const fields = { type, name, content, data, priority, ttl, proxied, settings, tags };
  const present = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
  return { ...Object.fromEntries(present), ...(comment === undefined ? {} : { comment }) };
}

/** The same of a whole record. */
export const inputOf = (given: z.output<typeof RecordInputSchema>): RecordInput => ({
  ...patchOf(given),
  type: given.type,
  name: given.name,
});

/** What a client should know of a record that it has written, though nothing is wrong. */
export function advice(input: Partial<RecordInput>, record: DnsRecord, zone: Zone): Message[] {
  const messages: Message[] = [];
  if (input.name !== undefined && looksForeign(input.name, zone.name)) {
    const message = `The name "${input.name}" is not in the zone: the record was made at "${record.name}"`;
    messages.push({ code: 9900, message });
  }
  if (input.priority !== undefined && record.priority === null) {
    messages.push({
      code: 9901,
      message: `The priority was ignored: it has no meaning for type ${record.type}`,
    });
  }
  return messages;
}

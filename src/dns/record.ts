import type { Plan } from "../zones/plans.ts";
import { dnsErrors } from "./errors.ts";
import { parseRecordName } from "./name.ts";
import { recordTypeNames, recordTypes, type RecordTypeName } from "./types/index.ts";

export interface RecordSettings {
  ipv4_only?: boolean;
  ipv6_only?: boolean;
  flatten_cname?: boolean;
}

/** What makes up a record; `name` is the whole name, lower-case ASCII without a final dot. */
export interface RecordFields {
  type: RecordTypeName;
  name: string;
  content: string;
  data: Record<string, unknown> | null;
  priority: number | null;
  ttl: number;
  proxied: boolean;
  settings: RecordSettings;
  comment: string | null;
  tags: string[];
}

export interface DnsRecord extends RecordFields {
  id: string;
  zoneId: string;
  createdOn: number;
  modifiedOn: number;
  commentModifiedOn: number | null;
  tagsModifiedOn: number | null;
}

/** A record as a client gives it. */
export interface RecordInput {
  type: string;
  name: string;
  content?: string | undefined;
  data?: Record<string, unknown> | undefined;
  priority?: number | undefined;
  ttl?: number | undefined;
  proxied?: boolean | undefined;
  settings?: { [K in keyof RecordSettings]: RecordSettings[K] | undefined } | undefined;
  comment?: string | null | undefined;
  tags?: readonly string[] | undefined;
}

const proxiableTypes: ReadonlySet<string> = new Set(["A", "AAAA", "CNAME"]);
/** Names whose CNAME proves ownership to somebody else: behind the edge they would prove nothing. */
const verificationTargets =
  /(^|\.)(acm-validations\.aws|dkim\.amazonses\.com|domainkey\.[a-z0-9-]+\.onmicrosoft\.com|dcv\.cloudflare\.com)$/;
const automaticTtl = 1;
const ttlMax = 86_400;

export const isProxiable = ({ type, content }: Pick<RecordFields, "type" | "content">): boolean =>
  proxiableTypes.has(type) && !(type === "CNAME" && verificationTargets.test(content));

/** Checks a record by itself, for a zone with that name and plan; see conflicts.ts for what stands beside it. */
export function parseRecord(input: RecordInput, zoneName: string, plan: Plan): RecordFields {
  const type = recordTypeNames.find((known) => known === input.type.toUpperCase());
  if (type === undefined) throw dnsErrors.invalidType(input.type, recordTypeNames);
  const name = parseRecordName(input.name, zoneName);
  const value = recordTypes[type].parse(input);
  if (type === "CNAME" && value.content === name) {
    throw dnsErrors.invalidContent("CNAME", "another name than the record's own", input.content);
  }
  const fields = { type, content: value.content };
  const proxied = input.proxied ?? false;
  if (proxied && !isProxiable(fields)) {
    throw dnsErrors.notProxiable(type, proxiableTypes.has(type) ? `with the target ${value.content}` : "");
  }
  return {
    ...fields,
    name,
    data: value.data ?? null,
    priority: value.priority ?? null,
    ttl: parseTtl(input.ttl, proxied, plan),
    proxied,
    settings: parseSettings(input.settings ?? {}, type),
    comment: parseComment(input.comment ?? null, plan),
    tags: parseTags(input.tags ?? [], plan),
  };
}

function parseTtl(ttl: number | undefined, proxied: boolean, plan: Plan): number {
  if (
    ttl !== undefined &&
    ttl !== automaticTtl &&
    !(Number.isInteger(ttl) && ttl >= plan.dnsTtlMin && ttl <= ttlMax)
  ) {
    throw dnsErrors.invalidTtl(plan.dnsTtlMin, ttl);
  }
  return proxied ? automaticTtl : (ttl ?? automaticTtl);
}

function parseSettings(settings: NonNullable<RecordInput["settings"]>, type: string): RecordSettings {
  const parsed: RecordSettings = {};
  if (settings.flatten_cname !== undefined && type !== "CNAME" && settings.flatten_cname) {
    throw dnsErrors.invalidSetting("flatten_cname", "false on a record that is no CNAME");
  }
  if (settings.ipv4_only === true && settings.ipv6_only === true) {
    throw dnsErrors.invalidSetting("ipv6_only", "false beside ipv4_only");
  }
  for (const name of ["ipv4_only", "ipv6_only"] as const) {
    if (settings[name] === undefined) continue;
    if (settings[name] && !proxiableTypes.has(type))
      throw dnsErrors.invalidSetting(name, "false on a record that cannot be proxied");
    parsed[name] = settings[name];
  }
  if (type === "CNAME") parsed.flatten_cname = settings.flatten_cname ?? false;
  return parsed;
}

function parseComment(comment: string | null, plan: Plan): string | null {
  if (comment === null || comment === "") return null;
  if (comment.length > plan.dnsCommentLengthMax)
    throw dnsErrors.invalidComment(`at most ${plan.dnsCommentLengthMax} characters on this plan`);
  if (/[\r\n]/.test(comment)) throw dnsErrors.invalidComment("one line");
  return comment;
}

function parseTags(tags: readonly string[], plan: Plan): string[] {
  if (tags.length > plan.dnsTagsMax)
    throw dnsErrors.invalidTag(tags[plan.dnsTagsMax]!, `at most ${plan.dnsTagsMax} tags on this plan`);
  const parsed = tags.map((tag) => {
    const [name = "", ...rest] = tag.split(":");
    if (!/^[\w-]{1,32}$/.test(name))
      throw dnsErrors.invalidTag(tag, 'names of 1 to 32 letters, digits, "_" and "-"');
    if (rest.join(":").length > 100 || /[\r\n,]/.test(tag))
      throw dnsErrors.invalidTag(tag, "values of at most 100 characters in one line, without commas");
    return rest.length === 0 ? name.toLowerCase() : `${name.toLowerCase()}:${rest.join(":")}`;
  });
  return [...new Set(parsed)].sort();
}

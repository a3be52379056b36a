import type { Plan } from "../../control/zones/plans.ts";
import { checkAll } from "../../platform/domain-error.ts";
import { parseComment, parseTags } from "./annotations.ts";
import { article, dnsErrors, invalidContent } from "./errors.ts";
import { parseRecordName } from "./name.ts";
import { recordTypeNames, recordTypes, type RecordTypeName } from "./types/record-types.ts";
import { nameInData } from "./types/services.ts";

/** The `settings` of a record, with the API's field names. Absent means false. */
export interface RecordSettings {
  ipv4_only?: boolean;
  ipv6_only?: boolean;
  flatten_cname?: boolean;
}

/** The fields of a record. `name` is the full name, in lower-case ASCII without a final dot. */
export interface RecordFields {
  type: RecordTypeName;
  name: string;
  content: string;
  data: Record<string, unknown> | null;
  priority: number | null;
  /** Seconds; 1 is "automatic". */
  ttl: number;
  proxied: boolean;
  settings: RecordSettings;
  comment: string | null;
  tags: string[];
}

/**
 * A stored DNS record. Times are milliseconds since 1970; `name` is absolute, in lower case, without a
 * final dot.
 */
export interface DnsRecord extends RecordFields {
  id: string;
  zoneId: string;
  createdOn: number;
  modifiedOn: number;
  commentModifiedOn: number | null;
  tagsModifiedOn: number | null;
}

/** A record as a client sends it. */
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

/** A type of records that can be proxied. */
export type ProxiableType = "A" | "AAAA" | "CNAME";
/** Types of records that can be proxied: those that lead to an origin. */
export const proxiableTypes: ReadonlySet<string> = new Set<ProxiableType>(["A", "AAAA", "CNAME"]);
/** Targets of CNAMEs that prove ownership to a third party. A proxied record would hide the proof. */
const verificationTargets =
  /(^|\.)(acm-validations\.aws|dkim\.amazonses\.com|onmicrosoft\.com|dcv\.cloudflare\.com)$/;
export const automaticTtl = 1;
export const ttlMax = 86_400;

/** Whether a record may be proxied. */
export const isProxiable = ({ type, content }: Pick<RecordFields, "type" | "content">): boolean =>
  proxiableTypes.has(type) && !(type === "CNAME" && verificationTargets.test(content));

/**
 * Validates a single record for a zone with this name and plan. conflicts.ts checks it against others. Throws
 * DomainError, or DomainErrors if several fields are wrong.
 */
export function parseRecord(input: RecordInput, zoneName: string, plan: Plan): RecordFields {
  const type = recordTypeNames.find((known) => known === input.type.toUpperCase());
  if (type === undefined) throw dnsErrors.invalidType(input.type, recordTypeNames);
  const proxied = input.proxied ?? false;
  const { name, value, ...rest } = checkAll({
    name: () => {
      const parsed = parseRecordName(input.name, zoneName);
      refuseName(type, parsed, zoneName, input.name);
      return parsed;
    },
    value: () => recordTypes[type].parse(input),
    ttl: () => parseTtl(input.ttl, proxied, plan),
    settings: () => parseSettings(input.settings ?? {}, type),
    comment: () => parseComment(input.comment ?? null, plan),
    tags: () => parseTags(input.tags ?? [], plan),
  });
  const { content, priority = null } = value;
  const data = ownData(value.data, name, zoneName);
  if (type === "CNAME" && content === name) {
    throw invalidContent("CNAME", "another name than the record's own", input.content);
  }
  if (proxied && !isProxiable({ type, content })) {
    const which = proxiableTypes.has(type) ? ` of content ${content}` : "";
    throw dnsErrors.notProxiable(`${article(type)} ${type} record${which}`);
  }
  return { type, name, content, data, priority, proxied, ...rest };
}

/** An SRV record's data, without the parts of its name if the record has been renamed. */
function ownData(
  data: Record<string, unknown> | undefined,
  name: string,
  zoneName: string,
): Record<string, unknown> | null {
  const named = nameInData(data);
  if (data === undefined || named === undefined || parseRecordName(named, zoneName) === name)
    return data ?? null;
  const { service: _service, proto: _proto, name: _name, ...rest } = data;
  return rest;
}

/** Throws for names that a type cannot have. */
function refuseName(type: RecordTypeName, name: string, zoneName: string, received: string): void {
  if (type === "SRV" && !/^(\*\.)?_[^.]+\._[^.]+\./.test(name) && !/^\*\._[^.]+\./.test(name)) {
    throw dnsErrors.invalidName(received, "an SRV record's name must begin with _service._protocol");
  }
  if (type === "DS" && name === zoneName) {
    throw dnsErrors.invalidName(received, "the DS records of the apex belong in the parent zone");
  }
}

function parseTtl(ttl: number | undefined, proxied: boolean, plan: Plan): number {
  const isValid =
    ttl === undefined ||
    ttl === automaticTtl ||
    (Number.isInteger(ttl) && ttl >= plan.dnsTtlMin && ttl <= ttlMax);
  if (!isValid) throw dnsErrors.invalidTtl(plan.dnsTtlMin, ttl);
  return proxied ? automaticTtl : (ttl ?? automaticTtl);
}

function parseSettings(settings: NonNullable<RecordInput["settings"]>, type: RecordTypeName): RecordSettings {
  const { ipv4_only, ipv6_only, flatten_cname } = settings;
  if (ipv4_only === true && ipv6_only === true) {
    throw dnsErrors.invalidSetting("ipv6_only", "false beside ipv4_only");
  }
  for (const [name, value] of Object.entries({ ipv4_only, ipv6_only })) {
    if (value === true && !proxiableTypes.has(type)) {
      throw dnsErrors.invalidSetting(name, "false on a record that cannot be proxied");
    }
  }
  if (flatten_cname === true && type !== "CNAME") {
    throw dnsErrors.invalidSetting("flatten_cname", "false on a record that is not a CNAME");
  }
  return {
    ...(ipv4_only === undefined || !proxiableTypes.has(type) ? {} : { ipv4_only }),
    ...(ipv6_only === undefined || !proxiableTypes.has(type) ? {} : { ipv6_only }),
    ...(type === "CNAME" ? { flatten_cname: flatten_cname ?? false } : {}),
  };
}

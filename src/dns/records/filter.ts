import { z } from "zod";
import { pageQuery } from "../../control/api/pagination.ts";
import { toAscii } from "./types/host.ts";
import { dnsErrors } from "./errors.ts";
import { parseRecordName } from "./name.ts";
import { recordTypeNames, recordTypes, type RecordTypeName } from "./types/record-types.ts";
import type { ValueInput } from "./types/type.ts";

const operators = ["exact", "contains", "startswith", "endswith", "present", "absent"] as const;
type Operator = (typeof operators)[number];
export interface TextFilter {
  operator: Operator;
  text: string;
}
/** A content filter, with the canonical forms of its text for each record type that accepts it. */
export interface ContentFilter extends TextFilter {
  forms: { type: RecordTypeName; content: string; priority?: number }[];
}

export interface RecordFilter {
  type: string | undefined;
  proxied: boolean | undefined;
  name: TextFilter[];
  content: ContentFilter[];
  comment: TextFilter[];
  tags: TextFilter[];
  search: string | undefined;
  /** Selects records at or below this delegation, except its NS records. */
  shadowedBy: string | undefined;
  /** Selects NS records at these names. */
  shadowing: string[] | undefined;
  match: "any" | "all";
  tagMatch: "any" | "all";
  order: "type" | "name" | "content" | "ttl" | "proxied";
  direction: "asc" | "desc";
  page: number;
  perPage: number;
}

// PostgreSQL does not allow NUL in text.
const filterText = (lengthMax: number) =>
  z
    .string()
    .max(lengthMax)
    .refine((text) => !text.includes("\0"), "text without NUL characters");
const text = filterText(2048).optional();
const tag = z.union([filterText(300), z.array(filterText(300)).max(50)]).optional();

/**
 * Query parameters of the list operation. Unknown parameters are rejected, because an unfiltered list would
 * mislead.
 */
export const RecordListQuery = pageQuery({ default: 100, max: 5_000_000 })
  .extend({
    type: z.enum(recordTypeNames).optional(),
    proxied: z.enum(["true", "false"]).optional(),
    name: text,
    "name.exact": text,
    "name.contains": text,
    "name.startswith": text,
    "name.endswith": text,
    content: text,
    "content.exact": text,
    "content.contains": text,
    "content.startswith": text,
    "content.endswith": text,
    comment: text,
    "comment.exact": text,
    "comment.contains": text,
    "comment.startswith": text,
    "comment.endswith": text,
    "comment.present": text,
    "comment.absent": text,
    tag,
    "tag.exact": tag,
    "tag.contains": tag,
    "tag.startswith": tag,
    "tag.endswith": tag,
    "tag.present": tag,
    "tag.absent": tag,
    search: filterText(300).optional(),
    include_shadow_metadata: z.enum(["true", "false"]).optional(),
    shadowed_by_name: filterText(255).optional(),
    shadowing_name: filterText(255).optional(),
    match: z.enum(["any", "all"]).default("all"),
    tag_match: z.enum(["any", "all"]).default("all"),
    order: z.enum(["type", "name", "content", "ttl", "proxied"]).default("name"),
    direction: z.enum(["asc", "desc"]).default("asc"),
  })
  .strict();

type Query = z.output<typeof RecordListQuery>;

/** Converts the query parameters of a list to a filter. Throws DomainError for an invalid name. */
export function recordFilter(query: Query, zoneName: string): RecordFilter {
  return {
    type: query.type,
    proxied: query.proxied === undefined ? undefined : query.proxied === "true",
    name: tests(query, "name").map(({ operator, text: name }) => ({
      operator,
      text: operator === "exact" ? storedName(name) : name,
    })),
    content: tests(query, "content").map((test) => ({
      ...test,
      forms: test.operator === "exact" ? contentForms(test.text, query.type) : [],
    })),
    comment: tests(query, "comment"),
    tags: tests(query, "tag"),
    search: query.search,
    shadowedBy: belowApex(query.shadowed_by_name, "shadowed_by_name", zoneName),
    shadowing: ancestors(belowApex(query.shadowing_name, "shadowing_name", zoneName), zoneName),
    match: query.match,
    tagMatch: query.tag_match,
    order: query.order,
    direction: query.direction,
    page: query.page,
    perPage: query.per_page,
  };
}

/**
 * The canonical forms of a content filter. Content is stored in one form for each type, but clients filter by
 * the form that they sent.
 */
function contentForms(text: string, type: RecordTypeName | undefined): ContentFilter["forms"] {
  return (type === undefined ? recordTypeNames : [type]).flatMap((each) => {
    const value = valueOf(each, { content: text });
    if (value !== undefined) return [{ type: each, ...value }];
    // Clients also write the content of MX, SRV and URI records without the priority.
    const content = valueOf(each, { content: text, priority: 0 })?.content;
    return content === undefined ? [] : [{ type: each, content }];
  });
}

function valueOf(
  type: RecordTypeName,
  input: ValueInput,
): { content: string; priority?: number } | undefined {
  try {
    const { content, priority } = recordTypes[type].parse(input);
    return { content, ...(priority === undefined ? {} : { priority }) };
  } catch {
    return undefined;
  }
}

function belowApex(name: string | undefined, parameter: string, zoneName: string): string | undefined {
  if (name === undefined) return undefined;
  const whole = parseRecordName(name, zoneName);
  if (whole === zoneName) throw dnsErrors.shadowOfApex(parameter, name);
  return whole;
}

/** A name and the names above it, without the apex. */
function ancestors(name: string | undefined, zoneName: string): string[] | undefined {
  if (name === undefined) return undefined;
  const labels = name.slice(0, -zoneName.length - 1).split(".");
  return labels.map((_, index) => [...labels.slice(index), zoneName].join("."));
}

/**
 * The filters on a field. "field" is short for "field.exact", and "tag" without a value is short for
 * "tag.present".
 */
function tests(query: Query, field: "name" | "content" | "comment" | "tag"): TextFilter[] {
  const given = query as Record<string, unknown>;
  const values = (key: string): string[] => [given[key] ?? []].flat() as string[];
  const short = (value: string): Operator => (field === "tag" && !value.includes(":") ? "present" : "exact");
  return [
    ...values(field).map((value) => ({ operator: short(value), text: value })),
    ...operators.flatMap((operator) =>
      values(`${field}.${operator}`).map((value) => ({ operator, text: value })),
    ),
  ];
}

const storedName = (name: string): string => toAscii(name.replace(/\.$/, "")) ?? name;

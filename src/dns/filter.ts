import { z } from "zod";
import { pageQuery } from "../api/pagination.ts";
import { toAscii } from "./types/host.ts";
import { recordTypeNames } from "./types/index.ts";

const operators = ["exact", "contains", "startswith", "endswith", "present", "absent"] as const;
type Operator = (typeof operators)[number];
export interface TextFilter {
  operator: Operator;
  text: string;
}

export interface RecordFilter {
  type: string | undefined;
  proxied: boolean | undefined;
  name: TextFilter[];
  content: TextFilter[];
  comment: TextFilter[];
  tags: TextFilter[];
  search: string | undefined;
  match: "any" | "all";
  tagMatch: "any" | "all";
  order: "type" | "name" | "content" | "ttl" | "proxied";
  direction: "asc" | "desc";
  page: number;
  perPage: number;
}

// PostgreSQL has no such character in text.
const filterText = (lengthMax: number) =>
  z
    .string()
    .max(lengthMax)
    .refine((text) => !text.includes("\0"), "text without NUL characters");
const text = filterText(2048).optional();
const tag = z.union([filterText(300), z.array(filterText(300)).max(50)]).optional();

/** The list operation's query parameters; an unknown one is refused, since a list without its filter misleads. */
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
    match: z.enum(["any", "all"]).default("all"),
    tag_match: z.enum(["any", "all"]).default("all"),
    order: z.enum(["type", "name", "content", "ttl", "proxied"]).default("name"),
    direction: z.enum(["asc", "desc"]).default("asc"),
  })
  .strict();

type Query = z.output<typeof RecordListQuery>;

export function recordFilter(query: Query): RecordFilter {
  return {
    type: query.type,
    proxied: query.proxied === undefined ? undefined : query.proxied === "true",
    name: tests(query, "name").map(({ operator, text: name }) => ({
      operator,
      text: operator === "exact" ? storedName(name) : name,
    })),
    content: tests(query, "content"),
    comment: tests(query, "comment"),
    tags: tests(query, "tag"),
    search: query.search,
    match: query.match,
    tagMatch: query.tag_match,
    order: query.order,
    direction: query.direction,
    page: query.page,
    perPage: query.per_page,
  };
}

/** What a query says of a field: "field" is short for "field.exact", but a tag without a value for "tag.present". */
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

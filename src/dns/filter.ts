import { z } from "zod";
import { pageQuery } from "../api/pagination.ts";
import { recordTypeNames } from "./types/index.ts";

const operators = ["exact", "contains", "startswith", "endswith", "present", "absent"] as const;
export interface TextFilter {
  operator: (typeof operators)[number];
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

const text = z.string().max(2048).optional();
const texts = z.union([z.string().max(300), z.array(z.string().max(300)).max(50)]).optional();

/** The list operation's query parameters. */
export const RecordListQuery = pageQuery({ default: 100, max: 5_000_000 }).extend({
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
  "comment.exact": text,
  "comment.contains": text,
  "comment.startswith": text,
  "comment.endswith": text,
  "comment.present": z.string().optional(),
  "comment.absent": z.string().optional(),
  tag: texts,
  "tag.exact": texts,
  "tag.contains": texts,
  "tag.startswith": texts,
  "tag.endswith": texts,
  "tag.present": texts,
  "tag.absent": texts,
  search: z.string().max(300).optional(),
  match: z.enum(["any", "all"]).default("all"),
  tag_match: z.enum(["any", "all"]).default("all"),
  order: z.enum(["type", "name", "content", "ttl", "proxied"]).default("name"),
  direction: z.enum(["asc", "desc"]).default("asc"),
});

export function recordFilter(query: z.output<typeof RecordListQuery>): RecordFilter {
  const given = query as Record<string, unknown>;
  const tests = (field: string): TextFilter[] =>
    (["", ...operators] as const).flatMap((operator) => {
      const value = given[operator === "" ? field : `${field}.${operator}`] as string | string[] | undefined;
      if (value === undefined) return [];
      return [value].flat().map((each) => ({ operator: operator === "" ? "exact" : operator, text: each }));
    });
  return {
    type: query.type,
    proxied: query.proxied === undefined ? undefined : query.proxied === "true",
    name: tests("name"),
    content: tests("content"),
    comment: tests("comment"),
    tags: tests("tag"),
    search: query.search,
    match: query.match,
    tagMatch: query.tag_match,
    order: query.order,
    direction: query.direction,
    page: query.page,
    perPage: query.per_page,
  };
}

import { sql, type Expression, type ExpressionBuilder, type SqlBool } from "kysely";
import type { DatabaseEngine } from "../../declaration.ts";
import type { Database } from "../../platform/storage/schema.ts";
import { recordTypeNames } from "./types/record-types.ts";
import type { ContentFilter, RecordFilter, TextFilter } from "./filter.ts";

type Condition = Expression<SqlBool>;

/** The SQL condition of a list's filters, over columns of `dns_records`. It ignores case. */
export const matching =
  (engine: DatabaseEngine, filter: RecordFilter) =>
  (eb: ExpressionBuilder<Database, "dns_records">): Condition => {
    const conditions: Condition[] = [
      ...(filter.type === undefined ? [] : [eb("type", "=", filter.type)]),
      ...(filter.proxied === undefined ? [] : [eb("proxied", "=", filter.proxied ? 1 : 0)]),
      // Names are stored in lower case, so a direct comparison can use the index.
      ...filter.name.map((test) =>
        test.operator === "exact" ? eb("name", "=", test.text) : compare(engine, "name", test),
      ),
      ...filter.content.map((test) =>
        eb.or([compare(engine, "content", test), compareQuoted(engine, test), ...test.forms.map(isOfForm)]),
      ),
      ...filter.comment.map((test) => compare(engine, "comment", test)),
    ];
    if (filter.tags.length > 0) {
      const tests = filter.tags.map((test) => compareTags(engine, test));
      conditions.push(filter.tagMatch === "any" ? eb.or(tests) : eb.and(tests));
    }
    if (filter.search !== undefined) conditions.push(searched(engine, filter.search)(eb));
    const matches = filter.match === "any" && conditions.length > 0 ? eb.or(conditions) : eb.and(conditions);
    return eb.and([matches, ...shadowConditions(eb, filter)]);
  };

/** Whether any text of a record contains this one. Every record of a large zone is tested, so each test is a cheap one. */
const searched =
  (engine: DatabaseEngine, text: string) =>
  (eb: ExpressionBuilder<Database, "dns_records">): Condition => {
    const test = { operator: "contains", text } as const;
    const types = recordTypeNames.filter((type) => type.includes(text.toUpperCase()));
    const place = sql.raw(engine === "sqlite" ? "instr" : "strpos");
    return eb.or([
      ...(types.length === 0 ? [] : [eb("type", "in", types)]),
      sql<SqlBool>`${place}(name, ${text.toLowerCase()}) > 0`,
      ...["content", "comment"].map((column) => compare(engine, column, test)),
      eb.and([eb("tags", "!=", "[]"), anyTag(engine, (tag) => contains(engine, tag, test))]),
    ]);
  };

/** Whether a list has all records of its zone. */
export const isUnfiltered = (filter: RecordFilter): boolean =>
  filter.type === undefined &&
  filter.proxied === undefined &&
  filter.search === undefined &&
  filter.shadowedBy === undefined &&
  filter.shadowing === undefined &&
  [filter.name, filter.content, filter.comment, filter.tags].every((tests) => tests.length === 0);

/** The conditions of the filters by delegation, which always apply, also with `match=any`. */
function shadowConditions(
  eb: ExpressionBuilder<Database, "dns_records">,
  { shadowedBy, shadowing }: RecordFilter,
): Condition[] {
  const conditions: Condition[] = [];
  if (shadowedBy !== undefined) {
    const isAt = eb.and([eb("name", "=", shadowedBy), eb("type", "!=", "NS")]);
    const isBelow = sql<SqlBool>`name like ${`%.${escapeLike(shadowedBy)}`} escape '\\'`;
    conditions.push(eb.or([isAt, isBelow]));
  }
  if (shadowing !== undefined) {
    conditions.push(eb("type", "=", "NS"), eb("name", "in", shadowing));
  }
  return conditions;
}

const lower = (value: Expression<unknown>): Expression<string> => sql<string>`lower(${value})`;
const escapeLike = (text: string): string => text.toLowerCase().replace(/[\\%_]/g, "\\$&");
/** SQLite ignores case by itself: its `lower` would make a copy of every value. */
const like = (engine: DatabaseEngine, value: Expression<unknown>, pattern: string): Condition =>
  sql<SqlBool>`${engine === "sqlite" ? value : lower(value)} like ${pattern} escape '\\'`;
const contains = (
  engine: DatabaseEngine,
  value: Expression<unknown>,
  { text }: { text: string },
): Condition => like(engine, value, `%${escapeLike(text)}%`);

function compare(engine: DatabaseEngine, column: string, { operator, text }: TextFilter): Condition {
  const value = sql.ref(column);
  switch (operator) {
    case "exact":
      return sql<SqlBool>`${lower(value)} = ${text.toLowerCase()}`;
    case "contains":
      return contains(engine, value, { text });
    case "startswith":
      return like(engine, value, `${escapeLike(text)}%`);
    case "endswith":
      return like(engine, value, `%${escapeLike(text)}`);
    case "present":
      return sql<SqlBool>`${value} is not null`;
    case "absent":
      return sql<SqlBool>`${value} is null`;
  }
}

const isOfForm = ({ type, content, priority }: ContentFilter["forms"][number]): Condition =>
  sql<SqlBool>`(type = ${type} and content = ${content} and ${priority === undefined ? sql`1 = 1` : sql`priority = ${priority}`})`;

/** Also finds quoted text by the text inside its quotes. */
function compareQuoted(engine: DatabaseEngine, { operator, text }: TextFilter): Condition {
  const quoted = { exact: `"${text}"`, startswith: `"${text}`, endswith: `${text}"` };
  return operator === "exact" || operator === "startswith" || operator === "endswith"
    ? compare(engine, "content", { operator, text: quoted[operator] })
    : sql<SqlBool>`1 = 0`;
}

/** A filter on tags: "name" for its presence, or "name:value" with an operator on the value. */
function compareTags(engine: DatabaseEngine, { operator, text }: TextFilter): Condition {
  const colon = text.indexOf(":");
  const name = escapeLike(colon < 0 ? text : text.slice(0, colon));
  const value = colon < 0 ? "" : escapeLike(text.slice(colon + 1));
  const isNamed = (tag: Expression<unknown>): Condition =>
    sql<SqlBool>`(${like(engine, tag, name)} or ${like(engine, tag, `${name}:%`)})`;
  switch (operator) {
    case "exact":
      return anyTag(engine, (tag) => sql<SqlBool>`${lower(tag)} = ${text.toLowerCase()}`);
    case "contains":
      return anyTag(engine, (tag) => like(engine, tag, `${name}:%${value}%`));
    case "startswith":
      return anyTag(engine, (tag) => like(engine, tag, `${name}:${value}%`));
    case "endswith":
      return anyTag(engine, (tag) => like(engine, tag, `${name}:%${value}`));
    case "present":
      return anyTag(engine, isNamed);
    case "absent":
      return sql<SqlBool>`not ${anyTag(engine, isNamed)}`;
  }
}

/** Whether a condition is true for any element of the column `tags`, a JSON array of strings. */
function anyTag(engine: DatabaseEngine, test: (tag: Expression<unknown>) => Condition): Condition {
  const tags = sql.ref("dns_records.tags");
  const elements =
    engine === "sqlite"
      ? sql`json_each(${tags}) as tag`
      : sql`jsonb_array_elements_text(${tags}::jsonb) as tag(value)`;
  return sql<SqlBool>`exists (select 1 from ${elements} where ${test(sql.ref("tag.value"))})`;
}

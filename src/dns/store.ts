import { sql, type ExpressionBuilder, type Selectable, type SqlBool, type Expression } from "kysely";
import { prepared } from "../storage/prepared.ts";
import type { Database, DnsRecordsTable } from "../storage/schema.ts";
import type { Read, Write } from "../storage/storage.ts";
import type { RecordFilter, TextFilter } from "./filter.ts";
import type { DnsRecord, RecordSettings } from "./record.ts";
import type { RecordTypeName } from "./types/index.ts";

const toRecord = (row: Selectable<DnsRecordsTable>): DnsRecord => ({
  id: row.id,
  zoneId: row.zone_id,
  type: row.type as RecordTypeName,
  name: row.name,
  content: row.content,
  data: row.data === null ? null : (JSON.parse(row.data) as Record<string, unknown>),
  priority: row.priority,
  ttl: row.ttl,
  proxied: row.proxied === 1,
  settings: JSON.parse(row.settings) as RecordSettings,
  comment: row.comment,
  tags: JSON.parse(row.tags) as string[],
  createdOn: row.created_on,
  modifiedOn: row.modified_on,
  commentModifiedOn: row.comment_modified_on,
  tagsModifiedOn: row.tags_modified_on,
});

const columns = (record: DnsRecord) => ({
  type: record.type,
  name: record.name,
  content: record.content,
  data: record.data === null ? null : JSON.stringify(record.data),
  priority: record.priority,
  ttl: record.ttl,
  proxied: record.proxied ? (1 as const) : (0 as const),
  settings: JSON.stringify(record.settings),
  comment: record.comment,
  tags: JSON.stringify(record.tags),
  modified_on: record.modifiedOn,
  comment_modified_on: record.commentModifiedOn,
  tags_modified_on: record.tagsModifiedOn,
});

const row = (record: DnsRecord) => ({
  id: record.id,
  zone_id: record.zoneId,
  created_on: record.createdOn,
  ...columns(record),
});

const byId = prepared((db, { id }: { id: string }) =>
  db.selectFrom("dns_records").selectAll().where("id", "=", id),
);
export async function find(read: Read, zoneId: string, id: string): Promise<DnsRecord | undefined> {
  const [found] = await byId(read, { id });
  return found?.zone_id === zoneId ? toRecord(found) : undefined;
}

const atName = prepared((db, { zoneId, name }: { zoneId: string; name: string }) =>
  db
    .selectFrom("dns_records")
    .selectAll()
    .where("zone_id", "=", zoneId)
    .where("name", "=", name)
    .orderBy("created_on")
    .orderBy("id"),
);
export async function listAtName(read: Read, zoneId: string, name: string): Promise<DnsRecord[]> {
  return (await atName(read, { zoneId, name })).map(toRecord);
}

export async function listOfZone(read: Read, zoneId: string): Promise<DnsRecord[]> {
  const rows = await read
    .selectFrom("dns_records")
    .selectAll()
    .where("zone_id", "=", zoneId)
    .orderBy("name")
    .orderBy("type")
    .orderBy("id")
    .execute();
  return rows.map(toRecord);
}

/** What the edge needs of every record: its name, and where it leads when it is proxied. */
export type Host = Pick<DnsRecord, "zoneId" | "name" | "type" | "content" | "proxied">;

export async function listHosts(read: Read): Promise<Host[]> {
  const rows = await read
    .selectFrom("dns_records")
    .select(["zone_id", "name", "type", "content", "proxied"])
    .orderBy("created_on")
    .orderBy("id")
    .execute();
  return rows.map((r) => ({
    zoneId: r.zone_id,
    name: r.name,
    type: r.type as RecordTypeName,
    content: r.content,
    proxied: r.proxied === 1,
  }));
}

export async function count(read: Read, zoneIds: readonly string[]): Promise<number> {
  if (zoneIds.length === 0) return 0;
  const { total } = await read
    .selectFrom("dns_records")
    .select((eb) => eb.fn.countAll<number>().as("total"))
    .where("zone_id", "in", zoneIds)
    .executeTakeFirstOrThrow();
  return total;
}

export async function list(
  read: Read,
  zoneId: string,
  filter: RecordFilter,
): Promise<{ records: DnsRecord[]; totalCount: number }> {
  const matching = read
    .selectFrom("dns_records")
    .where("zone_id", "=", zoneId)
    .where((eb) => condition(eb, filter));
  const rows = await matching
    .selectAll()
    .orderBy(filter.order, filter.direction)
    .orderBy("name")
    .orderBy("id")
    .limit(filter.perPage)
    .offset((filter.page - 1) * filter.perPage)
    .execute();
  const isWhole = filter.page === 1 && rows.length < filter.perPage;
  const totalCount = isWhole ? rows.length : await countMatching(matching);
  return { records: rows.map(toRecord), totalCount };
}

async function countMatching(matching: {
  select: (callback: (eb: ExpressionBuilder<Database, "dns_records">) => never) => unknown;
}): Promise<number> {
  const query = matching.select(((eb: ExpressionBuilder<Database, "dns_records">) =>
    eb.fn.countAll<number>().as("total")) as never) as {
    executeTakeFirstOrThrow(): Promise<{ total: number }>;
  };
  return (await query.executeTakeFirstOrThrow()).total;
}

type Builder = ExpressionBuilder<Database, "dns_records">;

function condition(eb: Builder, filter: RecordFilter): Expression<SqlBool> {
  const tests: Expression<SqlBool>[] = [
    ...(filter.type === undefined ? [] : [eb("type", "=", filter.type)]),
    ...(filter.proxied === undefined ? [] : [eb("proxied", "=", filter.proxied ? 1 : 0)]),
    ...textTests(sql.ref("name"), filter.name),
    ...textTests(sql.ref("content"), filter.content),
    ...textTests(sql.ref("comment"), filter.comment),
  ];
  if (filter.tags.length > 0) {
    const tagTests = filter.tags.map((test) => tagTest(test));
    tests.push(filter.tagMatch === "any" ? eb.or(tagTests) : eb.and(tagTests));
  }
  if (filter.search !== undefined) {
    const fields = ["name", "content", "comment", "tags", "type"] as const;
    tests.push(eb.or(fields.map((field) => like(sql.ref(field), `%${escapeLike(filter.search!)}%`))));
  }
  if (tests.length === 0) return sql<SqlBool>`1 = 1`;
  return filter.match === "any" ? eb.or(tests) : eb.and(tests);
}

const escapeLike = (text: string): string => text.replace(/[\\%_]/g, "\\$&");
const like = (column: Expression<unknown>, pattern: string): Expression<SqlBool> =>
  sql<SqlBool>`lower(${column}) like ${pattern.toLowerCase()} escape '\\'`;

function textTests(column: Expression<unknown>, tests: readonly TextFilter[]): Expression<SqlBool>[] {
  return tests.map(({ operator, text }) => {
    switch (operator) {
      case "exact":
        return sql<SqlBool>`lower(${column}) = ${text.toLowerCase()}`;
      case "contains":
        return like(column, `%${escapeLike(text)}%`);
      case "startswith":
        return like(column, `${escapeLike(text)}%`);
      case "endswith":
        return like(column, `%${escapeLike(text)}`);
      case "present":
        return sql<SqlBool>`${column} is not null`;
      case "absent":
        return sql<SqlBool>`${column} is null`;
    }
  });
}

/** Tags are a JSON array of "name:value" strings; a filter names a tag, and for most operators a part of its value. */
function tagTest({ operator, text }: TextFilter): Expression<SqlBool> {
  const [name = "", ...rest] = text.split(":");
  const value = escapeJson(rest.join(":"));
  const tags = sql.ref("tags");
  const key = escapeJson(name);
  switch (operator) {
    case "exact":
      return like(tags, `%"${rest.length === 0 ? key : `${key}:${value}`}"%`);
    case "contains":
      return like(tags, `%"${key}:%${value}%"%`);
    case "startswith":
      return like(tags, `%"${key}:${value}%"%`);
    case "endswith":
      return like(tags, `%"${key}:%${value}"%`);
    case "present":
      return sql<SqlBool>`(${like(tags, `%"${key}"%`)} or ${like(tags, `%"${key}:%`)})`;
    case "absent":
      return sql<SqlBool>`not (${like(tags, `%"${key}"%`)} or ${like(tags, `%"${key}:%`)})`;
  }
}
const escapeJson = (text: string): string => escapeLike(JSON.stringify(text).slice(1, -1));

const insertRow = prepared((db, values: ReturnType<typeof row>) =>
  db.insertInto("dns_records").values({
    id: values.id,
    zone_id: values.zone_id,
    created_on: values.created_on,
    type: values.type,
    name: values.name,
    content: values.content,
    data: values.data,
    priority: values.priority,
    ttl: values.ttl,
    proxied: values.proxied,
    settings: values.settings,
    comment: values.comment,
    tags: values.tags,
    modified_on: values.modified_on,
    comment_modified_on: values.comment_modified_on,
    tags_modified_on: values.tags_modified_on,
  }),
);
export async function insert(trx: Write, record: DnsRecord): Promise<void> {
  await insertRow(trx, row(record));
}

export async function update(trx: Write, record: DnsRecord): Promise<void> {
  await trx.updateTable("dns_records").set(columns(record)).where("id", "=", record.id).execute();
}

export async function remove(trx: Write, id: string): Promise<void> {
  await trx.deleteFrom("dns_records").where("id", "=", id).execute();
}

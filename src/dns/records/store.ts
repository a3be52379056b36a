import type { Selectable } from "kysely";
import { prepared } from "../../platform/storage/prepared.ts";
import type { DnsRecordsTable } from "./tables.ts";
import { Slices } from "../../platform/timers/slices.ts";
import type { Read, Write } from "../../platform/storage/storage.ts";
import type { RecordFilter } from "./filter.ts";
import type { DnsRecord, RecordSettings } from "./record.ts";
import type { DatabaseEngine } from "../../declaration.ts";
import { isUnfiltered, matching } from "./store-filter.ts";
import type { RecordTypeName } from "./types/record-types.ts";

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

/** A zone may have 100,000 records, and each has three columns of JSON. */
async function toRecords(rows: readonly Selectable<DnsRecordsTable>[]): Promise<DnsRecord[]> {
  const slices = new Slices();
  const records: DnsRecord[] = [];
  for (const each of rows) {
    records.push(toRecord(each));
    if (slices.isOver) await slices.rest();
  }
  return records;
}

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

/** Rows or keys in one statement, far below the limit on parameters of both engines. */
const chunkSize = 500;

function* chunks<T>(items: Iterable<T>): Generator<T[]> {
  const all = [...items];
  for (let at = 0; at < all.length; at += chunkSize) yield all.slice(at, at + chunkSize);
}

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

/** The records with these ids or names, and all other records at the same names. */
export async function listInvolved(
  read: Read,
  zoneId: string,
  ids: readonly string[],
  names: readonly string[],
): Promise<DnsRecord[]> {
  const all = new Set(names);
  const slices = new Slices();
  if (ids.length === 1) {
    const record = await find(read, zoneId, ids[0]!);
    if (record !== undefined) all.add(record.name);
  } else {
    for (const chunk of chunks(ids)) {
      const rows = await ofZone(read, zoneId).select("name").where("id", "in", chunk).execute();
      for (const { name } of rows) all.add(name);
      await slices.rest();
    }
  }
  const [first] = all;
  if (all.size === 1) return listAtName(read, zoneId, first!);
  const records: DnsRecord[] = [];
  for (const chunk of chunks(all)) {
    const rows = await ofZone(read, zoneId)
      .selectAll()
      .where("name", "in", chunk)
      .orderBy("created_on")
      .orderBy("id")
      .execute();
    records.push(...rows.map(toRecord));
    await slices.rest();
  }
  return records;
}

export async function listOfZone(read: Read, zoneId: string): Promise<DnsRecord[]> {
  const rows = await ofZone(read, zoneId)
    .selectAll()
    .orderBy("name")
    .orderBy("type")
    .orderBy("created_on")
    .orderBy("id")
    .execute();
  return toRecords(rows);
}

/** All records of all zones. Those of one name have the order of `listAtName`. */
export async function listAll(read: Read): Promise<DnsRecord[]> {
  const rows = await read
    .selectFrom("dns_records")
    .selectAll()
    .orderBy("zone_id")
    .orderBy("name")
    .orderBy("created_on")
    .orderBy("id")
    .execute();
  return rows.map(toRecord);
}

/** The parts of a record that the edge needs: its name, and its target if it is proxied. */
export type HostRecord = Pick<DnsRecord, "zoneId" | "name" | "type" | "content" | "proxied">;

/** The names of all zones that the edge may serve: records with addresses or aliases, oldest first. */
export async function listHosts(read: Read): Promise<HostRecord[]> {
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

/** The number of a zone's records, from the counter in the zone's row. */
export async function count(read: Read, zoneId: string): Promise<number> {
  const zone = await read
    .selectFrom("zones")
    .select("record_count")
    .where("id", "=", zoneId)
    .executeTakeFirst();
  return zone?.record_count ?? 0;
}

export async function countOfAccount(read: Read, accountId: string): Promise<number> {
  const { total } = await read
    .selectFrom("zones")
    .select((eb) => eb.fn.sum<number | null>("record_count").as("total"))
    .where("account_id", "=", accountId)
    .executeTakeFirstOrThrow();
  return total ?? 0;
}

export async function list(
  read: Read,
  engine: DatabaseEngine,
  zoneId: string,
  filter: RecordFilter,
): Promise<{ records: DnsRecord[]; totalCount: number }> {
  const found = ofZone(read, zoneId).where(matching(engine, filter));
  const ordered = (query: typeof found) =>
    query
      .orderBy(filter.order, filter.direction)
      .$if(filter.order !== "name", (each) => each.orderBy("name"))
      .orderBy("id");
  // Rows before the page are skipped in an index, without reading them.
  const ids = ordered(found)
    .select("id")
    .limit(filter.perPage)
    .offset((filter.page - 1) * filter.perPage);
  const rows = await ordered(read.selectFrom("dns_records").where("id", "in", ids))
    .selectAll()
    .execute();
  const isWhole = filter.page === 1 && rows.length < filter.perPage;
  if (isWhole) return { records: rows.map(toRecord), totalCount: rows.length };
  const total = isUnfiltered(filter) ? await count(read, zoneId) : await countFound(found);
  return { records: rows.map(toRecord), totalCount: total };
}

async function countFound(found: ReturnType<typeof ofZone>): Promise<number> {
  const { total } = await found
    .select((eb) => eb.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return total;
}

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
export async function insert(trx: Write, records: readonly DnsRecord[]): Promise<void> {
  if (records.length === 1) {
    await insertRow(trx, row(records[0]!));
    return;
  }
  const slices = new Slices();
  for (const chunk of chunks(records)) {
    await trx.insertInto("dns_records").values(chunk.map(row)).execute();
    await slices.rest();
  }
}

export async function update(trx: Write, record: DnsRecord): Promise<void> {
  await trx.updateTable("dns_records").set(columns(record)).where("id", "=", record.id).execute();
}

export async function remove(trx: Write, ids: readonly string[]): Promise<void> {
  const slices = new Slices();
  for (const chunk of chunks(ids)) {
    await trx.deleteFrom("dns_records").where("id", "in", chunk).execute();
    await slices.rest();
  }
}

const ofZone = (read: Read, zoneId: string) => read.selectFrom("dns_records").where("zone_id", "=", zoneId);

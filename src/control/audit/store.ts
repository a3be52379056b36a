import { sql, type Insertable, type Selectable } from "kysely";
import { prepared } from "../../platform/storage/prepared.ts";
import type { Read, Write } from "../../platform/storage/storage.ts";
import { firstIdAt } from "./entry-id.ts";
import type { AuditLogsTable } from "./tables.ts";

/** A row of the audit log. */
export type AuditEntry = Selectable<AuditLogsTable>;
type Column = keyof AuditLogsTable;

/** The columns of an entry, in both tables. */
const columns = [
  "id",
  "account_id",
  "account_name",
  "user_id",
  "zone_id",
  "zone_name",
  "action_result",
  "action_type",
  "operation",
  "description",
  "actor_context",
  "actor_email",
  "actor_id",
  "actor_ip_address",
  "actor_token_id",
  "actor_token_name",
  "actor_type",
  "raw_cf_ray_id",
  "raw_method",
  "raw_status_code",
  "raw_uri",
  "raw_user_agent",
  "resource_id",
  "resource_product",
  "resource_scope",
  "resource_type",
  "request",
  "before",
] as const satisfies readonly Column[];

const valuesOf = (entry: Insertable<AuditLogsTable>): Insertable<AuditLogsTable> =>
  Object.fromEntries(columns.map((column) => [column, entry[column]])) as Insertable<AuditLogsTable>;

const insertOne = prepared((db, entry: Insertable<AuditLogsTable>) =>
  db
    .insertInto("audit_logs")
    .values(valuesOf(entry))
    .onConflict((conflict) => conflict.columns(["account_id", "id"]).doNothing()),
);

const appendOne = prepared((db, entry: Insertable<AuditLogsTable>) =>
  db.insertInto("audit_log_tail").values(valuesOf(entry)),
);

/** All entries. Those of the tail have no index, so it stays short. */
export const entries = (read: Read) =>
  read.selectFrom(
    read
      .selectFrom("audit_logs")
      .select(columns)
      .unionAll(read.selectFrom("audit_log_tail").select(columns))
      .as("entries"),
  );

/**
 * Adds an entry without its indexes, which follow with `indexTail`. For SQLite, where it is written when this returns
 * nothing.
 */
export const append = (trx: Write, entry: AuditEntry): Promise<unknown> | undefined =>
  appendOne.now(trx, entry) === undefined ? appendOne(trx, entry) : undefined;

/** Does nothing if the entry exists already. */
export async function insert(trx: Write, entry: AuditEntry): Promise<void> {
  await insertOne(trx, entry);
}

/** Moves the oldest entries of the tail into the table with indexes. Returns whether there are more than `max`. */
export async function indexTail(trx: Write, max: number): Promise<boolean> {
  const later = await trx
    .selectFrom("audit_log_tail")
    .select("number")
    .orderBy("number")
    .limit(1)
    .offset(max)
    .executeTakeFirst();
  const moved = trx
    .selectFrom("audit_log_tail")
    .$if(later !== undefined, (all) => all.where("number", "<", later!.number))
    .select(columns);
  await trx
    .insertInto("audit_logs")
    .columns(columns)
    .expression(moved.orderBy("account_id").orderBy("id"))
    .onConflict((conflict) => conflict.columns(["account_id", "id"]).doNothing())
    .execute();
  await trx
    .deleteFrom("audit_log_tail")
    .$if(later !== undefined, (all) => all.where("number", "<", later!.number))
    .execute();
  return later !== undefined;
}

export async function exists(
  read: Read,
  { account_id, id }: Pick<AuditEntry, "account_id" | "id">,
): Promise<boolean> {
  return (await find(read, account_id, id)) !== undefined;
}

/** Notes that the call of an entry failed after all. */
export async function setFailed(
  trx: Write,
  { account_id, id }: Pick<AuditEntry, "account_id" | "id">,
  status: number,
): Promise<void> {
  for (const table of ["audit_logs", "audit_log_tail"] as const)
    await trx
      .updateTable(table)
      .set({ action_result: "failure", raw_status_code: status })
      .where("account_id", "=", account_id)
      .where("id", "=", id)
      .execute();
}

export interface Search {
  of: { account_id: string } | { user_id: string };
  sinceMs: number | undefined;
  beforeMs: number | undefined;
  direction: "asc" | "desc";
  /** Entries have one of the values in each column, and none of those under `not`. */
  has: Partial<Record<Column, readonly (string | number)[]>>;
  not: Partial<Record<Column, readonly (string | number)[]>>;
  /** Entries that come after this one, in the direction of the search. */
  after?: string | undefined;
  /** The last entry, in the direction of the search. */
  to?: string | undefined;
}

export interface ListPart {
  limit: number;
  offset?: number;
}

export async function list(read: Read, search: Search, { limit, offset }: ListPart): Promise<AuditEntry[]> {
  let query = matching(read, search).selectAll().orderBy("id", search.direction).limit(limit);
  if (offset !== undefined) query = query.offset(offset);
  return query.execute();
}

export async function count(read: Read, search: Search): Promise<number> {
  const row = await matching(read, search)
    .select(sql<number | string>`count(*)`.as("n"))
    .executeTakeFirstOrThrow();
  return Number(row.n);
}

/** The entry at this distance from the start of a search, whether it matches or not. Reads only an index. */
export async function idAt(read: Read, search: Search, entries: number): Promise<string | undefined> {
  const row = await matching(read, { ...search, has: {}, not: {} })
    .select("id")
    .orderBy("id", search.direction)
    .limit(1)
    .offset(entries - 1)
    .executeTakeFirst();
  return row?.id;
}

/** Different addresses of actors in the entries of a search, at most `limit`. */
export async function addresses(read: Read, search: Search, limit: number): Promise<string[]> {
  const rows = await matching(read, search)
    .select("actor_ip_address")
    .distinct()
    .where("actor_ip_address", "is not", null)
    .limit(limit)
    .execute();
  return rows.flatMap(({ actor_ip_address: address }) => (address === null ? [] : [address]));
}

export async function find(read: Read, accountId: string, id: string): Promise<AuditEntry | undefined> {
  return entries(read)
    .selectAll()
    .where("id", "=", id)
    .where("account_id", "=", accountId)
    .executeTakeFirst();
}

/** Entries of an account between two ids, the oldest first. */
export async function listBetween(
  read: Read,
  accountId: string,
  { after, before, limit }: { after: string; before: string; limit: number },
): Promise<AuditEntry[]> {
  return entries(read)
    .selectAll()
    .where("account_id", "=", accountId)
    .where("id", ">", after)
    .where("id", "<", before)
    .orderBy("id")
    .limit(limit)
    .execute();
}

type Bound = [operator: ">" | ">=" | "<" | "<=", id: string];

/**
 * The id range of a search, with one bound at each end. Given several bounds, SQLite might seek by the wrong one and read
 * the whole log in each step.
 */
function boundsOf({ sinceMs, beforeMs, direction, after, to }: Search): Bound[] {
  const [above, below] = direction === "asc" ? [after, to] : [to, after];
  const since: Bound | undefined = sinceMs === undefined ? undefined : [">=", firstIdAt(sinceMs)];
  const before: Bound | undefined = beforeMs === undefined ? undefined : ["<", firstIdAt(beforeMs)];
  const lower: Bound | undefined =
    above === undefined ? undefined : [direction === "asc" ? ">" : ">=", above];
  const upper: Bound | undefined =
    below === undefined ? undefined : [direction === "asc" ? "<=" : "<", below];
  const first = lower !== undefined && (since === undefined || lower[1] >= since[1]) ? lower : since;
  const last = upper !== undefined && (before === undefined || upper[1] < before[1]) ? upper : before;
  return [first, last].filter((bound) => bound !== undefined);
}

function matching(read: Read, search: Search) {
  const { of, has, not } = search;
  let query =
    "account_id" in of
      ? entries(read).where("account_id", "=", of.account_id)
      : entries(read).where("user_id", "=", of.user_id);
  for (const [operator, id] of boundsOf(search)) query = query.where("id", operator, id);
  for (const [column, values] of Object.entries(has))
    // PostgreSQL has no empty lists.
    query =
      values.length === 0
        ? query.where(sql<boolean>`1 = 0`)
        : query.where(column as "id", "in", values as string[]);
  for (const [column, values] of Object.entries(not))
    query = query.where((eb) =>
      eb.or([eb(column as "account_name", "is", null), eb(column as "id", "not in", values as string[])]),
    );
  return query;
}

/** The accounts with indexed entries of before a time, also deleted ones. Seeks from account to account in the key. */
export async function accountsBefore(read: Read, timeMs: number): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    with recursive accounts(id) as (
      select min(account_id) from audit_logs
      union all
      select (select min(account_id) from audit_logs where account_id > accounts.id)
      from accounts where accounts.id is not null
    )
    select id from accounts where id is not null and exists (
      select 1 from audit_logs where account_id = accounts.id and audit_logs.id < ${firstIdAt(timeMs)}
    )`.execute(read);
  return rows.map(({ id }) => id);
}

/** Deletes at most `limit` indexed entries of an account of before a time; returns their number. */
export async function removeBefore(
  trx: Write,
  accountId: string,
  timeMs: number,
  limit: number,
): Promise<number> {
  const old = (from: Read) =>
    from
      .selectFrom("audit_logs")
      .select("id")
      .where("account_id", "=", accountId)
      .where("id", "<", firstIdAt(timeMs))
      .orderBy("id")
      .limit(limit);
  const { numDeletedRows } = await trx
    .deleteFrom("audit_logs")
    .where("account_id", "=", accountId)
    .where("id", "in", old(trx))
    .executeTakeFirst();
  return Number(numDeletedRows);
}

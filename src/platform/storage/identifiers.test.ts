import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Kysely } from "kysely";
import { afterAll, expect, it } from "vitest";
import { migrate } from "./migrations/migrate.ts";
import type { Database } from "./schema.ts";
import { openSqlite, sqliteDialect } from "./sqlite.ts";
import { openStorage } from "./storage.ts";

/** Numbers of deleted rows are never reused. */
const folder = mkdtempSync(join(tmpdir(), "selvedge-identifiers-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Keys that only order the rows of their table (see OrderOnly in columns.ts). */
const orderOnly = ["audit_log_tail.number", "workflow_events.seq", "workflow_journal.seq"];

const tables = (database: DatabaseSync): { name: string; sql: string }[] =>
  database
    .prepare("select name, sql from sqlite_master where type = 'table' and name not like 'sqlite_%'")
    .all() as { name: string; sql: string }[];

/** Columns that SQLite generates: an integer that is the whole primary key. */
const generatedKeys = (database: DatabaseSync): { key: string; isLasting: boolean }[] =>
  tables(database).flatMap(({ name, sql }) => {
    const columns = database.prepare(`pragma table_info("${name}")`).all() as {
      name: string;
      type: string;
      pk: number;
    }[];
    const keys = columns.filter(({ pk }) => pk > 0);
    if (keys.length !== 1 || keys[0]!.type.toLowerCase() !== "integer") return [];
    return [{ key: `${name}.${keys[0]!.name}`, isLasting: /\bautoincrement\b/i.test(sql) }];
  });

it("SQLite never reuses a generated integer key, except keys that only order rows", async () => {
  const path = join(folder, "schema.db");
  await (await openStorage(`sqlite:${path}`)).close();
  const database = new DatabaseSync(path);
  const keys = generatedKeys(database);
  database.close();
  expect(keys.map(({ key }) => key)).toContain("workflows.rid");
  expect(keys.filter(({ isLasting }) => !isLasting).map(({ key }) => key)).toEqual(
    expect.arrayContaining(orderOnly),
  );
  expect(keys.filter(({ key, isLasting }) => !isLasting && !orderOnly.includes(key))).toEqual([]);
});

it("no source file reads a key that only orders rows, or a rowid", () => {
  const root = join(import.meta.dirname, "../..");
  const sources = readdirSync(root, { recursive: true, encoding: "utf8" }).filter(
    (file) => file.endsWith(".ts") && !file.endsWith(".test.ts"),
  );
  expect(sources.length).toBeGreaterThan(500);
  const declared = sources
    .filter((file) => basename(file) === "tables.ts")
    .map((file) => readFileSync(join(root, file), "utf8"));
  expect(declared.join("").match(/: OrderOnly;/g)).toHaveLength(orderOnly.length);
  // `lastInsertRowid` is allowed: it is the key of a table that has one.
  // An export of a customer's database keeps the order of its schema.
  // The test kit brings rows back with the rowids that they had.
  const others = [
    join("platform", "storage", "under-test", "kept-copies.ts"),
    join("platform", "storage", "under-test", "kept-table.ts"),
    join("products", "d1", "worker", "dump.ts"),
  ];
  const readers = sources.filter((file) =>
    /\b(?<!without )_?rowid_?\b/.test(readFileSync(join(root, file), "utf8")),
  );
  expect(readers.toSorted()).toEqual(others);
});

it("a number stays used after its row is deleted and the process restarts", async () => {
  const url = `sqlite:${join(folder, "again.db")}`;
  const numbers: number[] = [];
  for (let start = 0; start < 3; start++) {
    const storage = await openStorage(url);
    const { read } = storage;
    if (start === 0) await insertAccount(storage);
    const { rid } = await read
      .insertInto("workflows")
      .values({ id: `w${start}`, account_id: "a", name: "w", ...columns })
      .returning("rid")
      .executeTakeFirstOrThrow();
    numbers.push(rid);
    await read.deleteFrom("workflows").execute();
    await storage.close();
  }
  expect(numbers).toEqual([1, 2, 3]);
});

it("an older database keeps its rows and never reuses a number that is still referenced", async () => {
  const path = join(folder, "before.db");
  // The last schema whose numbers were given out again.
  const older = new Kysely<Database>({ dialect: sqliteDialect(openSqlite(path)) });
  await migrate({ read: older, engine: "sqlite" }, "0010-workflow-schedules");
  await insertAccount({ read: older });
  await older.destroy();
  const database = new DatabaseSync(path);
  database.exec("pragma foreign_keys = off");
  const shared = "'s', 'C', 1, 1";
  database.exec(`
    insert into workflows (rid, id, account_id, name, script_name, class_name, created_on, modified_on)
      values (1, 'w1', 'a', 'kept', ${shared}), (2, 'w2', 'a', 'gone', ${shared});
    insert into workflow_versions (rid, id, workflow_rid, script_name, script_version, class_name, created_on)
      values (1, 'v1', 1, 's', 'x', 'C', 1);
    insert into workflow_instances (rid, shard, account_id, workflow_rid, id, trigger, params, success_retention_ms, error_retention_ms, status, run, version_rid, created_on, modified_on, crashes)
      values (4, 0, 'a', 1, 'i4', 'api', 'j{}', 1, 1, 'complete', 1, 7, 1, 1, 0);
    insert into workflow_journal (rid, run, kind, key, attempt, at) values (9, 1, 'done', 'do:a-1', 1, 1);
    delete from workflows where rid = 2;
    update workflow_instances set workflow_rid = 5 where rid = 4;`);
  const before = schemaOf(database);
  database.close();

  const storage = await openStorage(`sqlite:${path}`);
  const { read } = storage;
  expect(await read.selectFrom("workflow_versions").select(["rid", "id"]).execute()).toEqual([
    { rid: 1, id: "v1" },
  ]);
  const workflow = await read
    .insertInto("workflows")
    .values({ id: "w3", account_id: "a", name: "new", ...columns })
    .returning("rid")
    .executeTakeFirstOrThrow();
  expect(workflow.rid).toBe(6); // a remaining instance refers to 5
  const made = { workflow_rid: 6, script_name: "s", script_version: "y", class_name: "C", created_on: 1 };
  const version = await read
    .insertInto("workflow_versions")
    .values({ id: "v2", steps_max: null, ...made })
    .returning("rid")
    .executeTakeFirstOrThrow();
  expect(version.rid).toBe(8);
  // References still work.
  await read.deleteFrom("workflows").where("rid", "=", 1).execute();
  expect(await read.selectFrom("workflow_versions").select("id").execute()).toEqual([{ id: "v2" }]);
  await storage.close();
  const after = new DatabaseSync(path);
  after.exec(
    "insert into workflow_instances (shard, account_id, workflow_rid, id, trigger, params, success_retention_ms, error_retention_ms, status, run, version_rid, created_on, modified_on, crashes) values (0, 'a', 6, 'i', 'api', 'j{}', 1, 1, 'complete', 1, 8, 1, 1, 0)",
  );
  expect(after.prepare("select max(rid) as rid from workflow_instances").get()).toEqual({ rid: 10 });
  const withLaterColumn = (sql: string): string =>
    sql.replace(/(?<=^CREATE TABLE "workflow_instances".*)\)$/, ', "creator_trace" text)');
  expect(schemaOf(after)).toEqual(
    before.map((sql) => withLaterColumn(sql.replace(/("rid" integer primary key)(?=,)/, "$1 autoincrement"))),
  );
  after.close();
});

const columns = {
  script_name: "s",
  class_name: "C",
  steps_max: null,
  success_retention_ms: null,
  error_retention_ms: null,
  crons: "[]",
  created_on: 1,
  modified_on: 1,
};

/** The definitions of the tables with the numbers, and of their indexes. */
const schemaOf = (database: DatabaseSync): string[] =>
  (
    database.prepare("select sql, tbl_name from sqlite_master where sql is not null order by name").all() as {
      sql: string;
      tbl_name: string;
    }[]
  )
    .filter(({ tbl_name }) => /^workflow(s|_versions|_instances)$/.test(tbl_name))
    .map(({ sql }) => sql);

const insertAccount = async ({ read }: { read: Kysely<Database> }): Promise<unknown> =>
  read
    .insertInto("accounts")
    .values({ id: "a", name: "A", type: "standard", settings: "{}", has_billing: 1, created_on: 1 })
    .execute();

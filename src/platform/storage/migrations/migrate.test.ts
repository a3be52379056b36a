import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { DatabaseSync } from "node:sqlite";
import { Kysely, sql } from "kysely";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { startPostgres } from "../../../../test/helpers/postgres.ts";
import { fillTables } from "../../../../test/helpers/fill-tables.ts";
import { describeStorage } from "../../../../test/helpers/storage-matrix.ts";

import { parentsFirst, tablesOf } from "../backup/model.ts";
import { UnusableDatabase } from "../faults.ts";
import { currentSchema, migrate, schemaVersions } from "./migrate.ts";
import { postgresDialect } from "../postgres.ts";
import type { Database } from "../schema.ts";
import { openSqlite, sqliteDialect } from "../sqlite.ts";
import { openStorage } from "../storage.ts";

const root = mkdtempSync(join(tmpdir(), "selvedge-migrate-"));
afterAll(() => rmSync(root, { recursive: true }));
let names = 0;
const fresh = (): string => {
  const folder = join(root, String(++names));
  mkdirSync(folder);
  return join(folder, "selvedge.db");
};

/** A file with rows in every table of a schema version. */
async function filledAt(schema: string): Promise<string> {
  const path = fresh();
  const read = new Kysely<Database>({ dialect: sqliteDialect(openSqlite(path)) });
  await migrate({ read, engine: "sqlite" }, schema);
  await read.destroy();
  fillTables(path, await tablesOf(schema), 2);
  return path;
}

const definitionsOf = (path: string): unknown[] => {
  const database = new DatabaseSync(path);
  const found = database.prepare("select type, name, sql from sqlite_master order by type, name").all();
  database.close();
  return found;
};

/** The rows of every table, with the columns of the given tables. */
function rowsOf(path: string, tables: Awaited<ReturnType<typeof tablesOf>>): Record<string, unknown[]> {
  const database = new DatabaseSync(path);
  const entries = tables.map(({ name, columns }) => {
    const kept = new Set(
      database
        .prepare(`select name from pragma_table_info('${name}')`)
        .all()
        .map((row) => row["name"]),
    );
    const shown = columns.filter((column) => kept.has(column.name)).map((column) => `"${column.name}"`);
    return [name, database.prepare(`select ${shown.join(", ")} from "${name}" order by 1`).all()];
  });
  database.close();
  return Object.fromEntries(entries) as Record<string, unknown[]>;
}

/** The sequences of a file, which updates count on: a missing row is no number. */
function sequencesOf(path: string): unknown[] {
  const database = new DatabaseSync(path);
  const rows = database.prepare("select name, seq from sqlite_sequence order by name").all();
  database.close();
  return rows.map((row) => ({ ...row }));
}

it("a new SQLite file has the schema that all migrations make", async () => {
  const [migrated, created, emptied] = [await filledAt(schemaVersions[0]!), fresh(), fresh()];
  const read = new Kysely<Database>({ dialect: sqliteDialect(openSqlite(emptied)) });
  await migrate({ read, engine: "sqlite" });
  await read.destroy();
  for (const path of [migrated, created, emptied]) await (await openStorage(`sqlite:${path}`)).close();
  expect(definitionsOf(created)).toEqual(definitionsOf(migrated));
  expect(sequencesOf(created)).toEqual(sequencesOf(emptied));
  expect(sequencesOf(created)).toContainEqual({ name: "workflow_instances", seq: 0 });
  const database = new DatabaseSync(created);
  const names = database.prepare("select name from kysely_migration order by timestamp, name").all();
  expect(names.map((row) => row["name"])).toEqual(schemaVersions);
  expect(database.prepare("pragma foreign_key_check").all()).toEqual([]);
  database.close();
});

describe("every migration", () => {
  it.each(schemaVersions.slice(0, -1))("keeps the rows of a database with schema %s", async (schema) => {
    const path = await filledAt(schema);
    const before = await tablesOf(schema);
    const after = await tablesOf(currentSchema);
    const shared = before.flatMap((table) => {
      const now = after.find(({ name }) => name === table.name);
      if (now === undefined) return [];
      return [
        {
          ...table,
          columns: table.columns.filter(({ name }) => now.columns.some((each) => each.name === name)),
        },
      ];
    });
    const rows = rowsOf(path, shared);
    await (await openStorage(`sqlite:${path}`)).close();
    expect(rowsOf(path, shared)).toEqual(rows);
    const database = new DatabaseSync(path);
    expect(database.prepare("pragma foreign_key_check").all()).toEqual([]);
    database.close();
  });

  it("of a SQLite file that is killed at any statement is done by the next start", async () => {
    const start = await filledAt("0003-scripts");
    const whole = fresh();
    copyFileSync(start, whole);
    await (await openStorage(`sqlite:${whole}`)).close();
    const program = join(root, "killed.ts");
    const here = import.meta.dirname;
    // Ends the process with the given statement, as kill -9 would.
    writeFileSync(
      program,
      `import { DatabaseSync } from "node:sqlite";
      import { openStorage } from "${here}/../storage.ts";
      const prepare = DatabaseSync.prototype.prepare;
      let left = Number(process.argv[3]);
      DatabaseSync.prototype.prepare = function (...args) {
        if (/^(create|alter|drop|insert) /i.test(args[0]) && left-- === 0) process.kill(process.pid, "SIGKILL");
        return prepare.apply(this, args);
      };
      await (await openStorage("sqlite:" + process.argv[2])).close();`,
    );
    for (const statements of [1, 12, 40, 60]) {
      const path = fresh();
      copyFileSync(start, path);
      const { signal } = spawnSync(process.execPath, [program, path, String(statements)]);
      expect(signal).toBe("SIGKILL");
      await (await openStorage(`sqlite:${path}`)).close();
      expect(definitionsOf(path)).toEqual(definitionsOf(whole));
      const tables = parentsFirst(await tablesOf("0003-scripts"));
      expect(rowsOf(path, tables)).toEqual(rowsOf(whole, tables));
    }
  });
});

describe("every migration on PostgreSQL", () => {
  it("keeps the rows of all tables that the schemas before it have", async () => {
    const postgres = await startPostgres();
    onTestFinished(() => postgres.stop());
    const read = new Kysely<Database>({
      dialect: postgresDialect(await postgres.createDatabase(), undefined),
    });
    onTestFinished(() => read.destroy());
    /** Rows as they were inserted. */
    const inserted = new Map<string, Record<string, unknown>[]>();
    for (const schema of schemaVersions) {
      await migrate({ read, engine: "postgres" }, schema);
      const tables = await tablesOf(schema);
      for (const [name, rows] of inserted) {
        const now = tables.find((table) => table.name === name);
        if (now === undefined) continue; // a later schema dropped it
        const columns = Object.keys(rows[0]!).filter((column) =>
          now.columns.some((each) => each.name === column),
        );
        const key = sql.join(now.key.map((column) => sql.ref(column)));
        const { rows: found } = await sql<Record<string, unknown>>`
          select ${sql.join(columns.map((column) => sql.ref(column)))} from ${sql.table(name)} order by ${key}`.execute(
          read,
        );
        const kept = rows.map((row) => Object.fromEntries(columns.map((column) => [column, row[column]])));
        const inOrder = (list: object[]): string[] =>
          list.map((row) => inspect(row, { depth: 4 })).toSorted();
        expect(inOrder(found), `${name} at ${schema}`).toEqual(inOrder(kept));
      }
      const path = await filledAt(schema);
      const database = new DatabaseSync(path);
      for (const table of parentsFirst(tables)) {
        if (inserted.has(table.name)) continue;
        const rows = database
          .prepare(`select * from "${table.name}"`)
          .all()
          .map((row) => ({ ...row }));
        for (const row of rows)
          for (const [column, value] of Object.entries(row))
            if (value instanceof Uint8Array) row[column] = Buffer.from(value);
        for (const row of rows)
          await sql`insert into ${sql.table(table.name)} (${sql.join(Object.keys(row).map((column) => sql.ref(column)))})
            values (${sql.join(Object.values(row))})`.execute(read);
        inserted.set(table.name, rows);
      }
      database.close();
    }
    expect(inserted.size).toBeGreaterThan(40);
  });
});

describeStorage("the schema of a newer program", (openFresh) => {
  const makeNewer = async (
    oldestProgram: string | undefined,
  ): Promise<Awaited<ReturnType<typeof openFresh>>> => {
    const storage = await openFresh();
    await sql`insert into kysely_migration (name, timestamp) values ('9999-later', '')`.execute(storage.read);
    await sql`delete from schema_info`.execute(storage.read);
    if (oldestProgram !== undefined)
      await sql`insert into schema_info values ('9999-later', '7.1.0', ${oldestProgram})`.execute(
        storage.read,
      );
    return storage;
  };

  it("is refused with the version to install, if this program is too old", async () => {
    const storage = await makeNewer("7.0.0");
    const refusal = migrate(storage);
    await expect(refusal).rejects.toThrow(UnusableDatabase);
    await expect(refusal).rejects.toThrow(
      /9999-later, written by Selvedge 7\.1\.0, .* Install Selvedge 7\.0\.0 or newer/,
    );
    await storage.close();
    const unknown = await makeNewer(undefined);
    await expect(migrate(unknown)).rejects.toThrow("Install a newer Selvedge.");
    await unknown.close();
  });

  it("is used as it is, if that program says so", async () => {
    const storage = await makeNewer("0.1.0");
    await migrate(storage);
    const { rows } = await sql`select name from kysely_migration where name = '9999-later'`.execute(
      storage.read,
    );
    expect(rows).toHaveLength(1);
    await storage.close();
  });
});

it("adds migrations only after those that databases may already have", () => {
  // Databases refuse a migration that sorts before one that they have. Append the number of each new migration.
  const numbers =
    "0001 0002 0003 0004 0005 0006 0007 0008 0009 0010 0011 0012 0013 0014 0015 0016 0017 0018 " +
    "0019 0020 0021 0023 0025 0026 0028 0029 0030 0031 0032 0033 0034 0036 0037";
  expect(schemaVersions.map((name) => name.slice(0, 4)).join(" ")).toBe(numbers);
});

describe("a damaged SQLite file", () => {
  const advice = /is damaged: .*selvedge restore/s;

  it("is refused when it is cut off, empty beside blobs, or no database", async () => {
    const cut = await filledAt(currentSchema);
    truncateSync(cut, 200 * 1024);
    await expect(openStorage(`sqlite:${cut}`)).rejects.toThrow(advice);

    const empty = fresh();
    writeFileSync(empty, "");
    mkdirSync(join(empty, "../blobs/kv"), { recursive: true });
    await expect(openStorage(`sqlite:${empty}`)).rejects.toThrow("it is empty");

    const other = fresh();
    writeFileSync(other, "x".repeat(10_000));
    await expect(openStorage(`sqlite:${other}`)).rejects.toThrow(advice);
  });

  it("is refused when pages of any table are overwritten", async () => {
    const whole = await filledAt(currentSchema);
    const database = new DatabaseSync(whole);
    const pages = database
      .prepare(`select name, rootpage as page from sqlite_master where type = 'table' and rootpage > 1
        and name in ('zones', 'dns_records', 'kv_entries', 'workflow_journal')`)
      .all() as { name: string; page: number }[];
    const { page_size: size } = database.prepare("pragma page_size").get() as { page_size: number };
    database.exec("pragma wal_checkpoint(truncate)");
    database.close();
    expect(pages).toHaveLength(4);
    for (const { name, page } of pages) {
      const path = fresh();
      copyFileSync(whole, path);
      const file = await open(path, "r+");
      await file.write(Buffer.alloc(size), 0, size, (page - 1) * size);
      await file.close();
      await expect(openStorage(`sqlite:${path}`), name).rejects.toThrow(advice);
    }
  });
});

import { hash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { Kysely, sql } from "kysely";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { filledBlob, fillTables } from "../../../../test/helpers/fill-tables.ts";
import { backupAt } from "../../../../test/helpers/backup-at.ts";
import { startPostgres, type TestPostgres } from "../../../../test/helpers/postgres.ts";
import { FileBlobs, type Blobs } from "../blobs.ts";
import { BlobCounts } from "../blobs/blob-counts.ts";
import { PostgresStore } from "../blobs/postgres-store.ts";
import { RemoteBlobs } from "../blobs/remote-blobs.ts";
import { currentSchema, migrate } from "../migrations/migrate.ts";
import type { Database } from "../schema.ts";
import { openSqlite, sqliteDialect } from "../sqlite.ts";
import { connectPostgres, openStorage } from "../storage.ts";
import { backUp } from "./back-up.ts";
import { openBackup, manifestText } from "./manifest.ts";
import { digestLine } from "../archive/manifest-files.ts";
import { leftOutTables, postgresTables, tablesOf } from "./model.ts";
import { openSource } from "./open-source.ts";
import { restore } from "./restore.ts";
import { verify } from "./verify.ts";

const root = mkdtempSync(join(tmpdir(), "selvedge-backup-"));
let postgres: TestPostgres;
let names = 0;
const fresh = (): string => join(root, String(++names));
const blobsOf = (dataDir: string): FileBlobs => new FileBlobs(join(dataDir, "blobs"));
const urlOf = (dataDir: string): string => `sqlite:${join(dataDir, "selvedge.db")}`;

async function backUpOf(databaseUrl: string, dataDir: string, target = fresh()): Promise<string> {
  const source = await openSource(databaseUrl);
  try {
    await backUp({ source, blobs: blobsOf(dataDir), dataDir, target: backupAt(target) });
  } finally {
    await source.close();
  }
  return target;
}
const restoreTo = async (archive: string, dataDir: string, databaseUrl = urlOf(dataDir)): Promise<unknown> =>
  restore({ archive: backupAt(archive), dataDir, databaseUrl, blobs: blobsOf(dataDir) });

/** A data folder with rows in every table, and their blobs. */
async function filledFolder(rowsEach = 3): Promise<string> {
  const dataDir = fresh();
  await (await openStorage(urlOf(dataDir))).close();
  const keys = fillTables(join(dataDir, "selvedge.db"), await tablesOf(currentSchema), rowsEach);
  for (const key of keys) await blobsOf(dataDir).put(key, Buffer.from(`content of ${key}`));
  return dataDir;
}

const digestOf = (path: string): string => hash("sha256", readFileSync(path));

/** Every file of a folder with the digest of its content, without the lock. */
function contentOf(folder: string): Record<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter(
    (each) => each.isFile() && each.name !== "selvedge.lock",
  );
  const paths = files.map(({ parentPath, name }) => join(parentPath, name)).toSorted();
  return Object.fromEntries(paths.map((path) => [path.slice(folder.length), digestOf(path)]));
}

let dataDir: string;
let archive: string;
beforeAll(async () => {
  postgres = await startPostgres();
  dataDir = await filledFolder();
  archive = await backUpOf(urlOf(dataDir), dataDir);
});
afterAll(async () => {
  await postgres.stop();
  rmSync(root, { recursive: true });
});

describe("the archive", () => {
  it("is the same after a restore into PostgreSQL and one back into SQLite", async () => {
    const [onPostgres, onSqlite] = [fresh(), fresh()];
    const url = await postgres.createDatabase();
    await restoreTo(archive, onPostgres, url);
    const second = await backUpOf(url, onPostgres);
    await restoreTo(second, onSqlite);
    const third = await backUpOf(urlOf(onSqlite), onSqlite);
    for (const folder of ["tables", "blobs"]) {
      const first = contentOf(join(archive, folder));
      expect(Object.keys(first).length).toBeGreaterThan(5);
      expect(contentOf(join(second, folder))).toEqual(first);
      expect(contentOf(join(third, folder))).toEqual(first);
    }
    const rows = (await openBackup(backupAt(third))).manifest.tables.map((table) => table.rows);
    expect(new Set(rows)).toEqual(new Set([3]));
  });

  it("has every table that both engines have, and numbers go on where they were", async () => {
    const storage = await openStorage(await postgres.createDatabase());
    const { rows } = await sql<{ name: string }>`
      select table_name as name from information_schema.tables where table_schema = 'public'`.execute(
      storage.read,
    );
    await storage.close();
    const archived = (await tablesOf(currentSchema)).map(({ name }) => name);
    const others = rows.map(({ name }) => name).filter((name) => !archived.includes(name));
    // Tables that only PostgreSQL has are for nodes that share it. A new one here needs a decision: is it
    // archived?
    expect(others.toSorted()).toEqual([...leftOutTables, ...postgresTables].toSorted());
  });

  it("keeps the highest number of a table whose rows were deleted", async () => {
    const from = fresh();
    const storage = await openStorage(urlOf(from));
    await storage.close();
    fillTables(join(from, "selvedge.db"), await tablesOf(currentSchema), 3);
    const again = await openStorage(urlOf(from));
    await sql`delete from queues`.execute(again.read);
    const highest = 30_000_000_000;
    await again.close();
    const kept = await backUpOf(urlOf(from), from);
    const url = await postgres.createDatabase();
    for (const [folder, databaseUrl] of [[fresh(), url] as const, [fresh(), undefined] as const]) {
      await restoreTo(kept, folder, databaseUrl);
      const restored = await openStorage(databaseUrl ?? urlOf(folder));
      const { rows } = await sql<{ number: number }>`
        insert into queues (id, account_id, name, settings, created_on, modified_on)
        select 'new', id, 'new', '{}', 0, 0 from accounts limit 1 returning number`.execute(restored.read);
      expect(rows[0]!.number).toBe(highest + 1);
      await restored.close();
    }
  });

  it("is private", () => {
    for (const entry of readdirSync(archive, { recursive: true, withFileTypes: true }))
      expect(statSync(join(entry.parentPath, entry.name)).mode & 0o077, entry.name).toBe(0);
  });
});

describe("an archive of an older schema", () => {
  it("is restored into PostgreSQL, which also keeps its blobs, again after a restore that failed", async () => {
    const from = fresh();
    const path = join(from, "selvedge.db");
    mkdirSync(from, { recursive: true });
    const old = "0011-lasting-numbers"; // before PostgreSQL could keep blobs
    const read = new Kysely<Database>({ dialect: sqliteDialect(openSqlite(path)) });
    await migrate({ read, engine: "sqlite" }, old);
    await read.destroy();
    const keys = fillTables(path, await tablesOf(old), 3);
    for (const key of keys) await blobsOf(from).put(key, Buffer.from(`content of ${key}`));
    const kept = backupAt(await backUpOf(urlOf(from), from));

    const url = await postgres.createDatabase();
    const connected = await connectPostgres(url);
    const blobs = new RemoteBlobs({
      store: new PostgresStore(connected),
      folder: fresh(),
      cacheBytes: 1_000_000,
      counts: new BlobCounts("postgres"),
      logger: pino({ level: "silent" }),
    });
    const failing = Object.assign(Object.create(null) as Blobs, {
      put: async () => Promise.reject(new Error("the store is away")),
    });
    const input = { archive: kept, dataDir: fresh(), databaseUrl: url };
    await expect(restore({ ...input, blobs: failing })).rejects.toThrow("the store is away");
    await expect(openStorage(url)).rejects.toThrow("did not finish");
    await restore({ ...input, blobs });

    const storage = await openStorage(url);
    const values = await storage.read.selectFrom("kv_entries").select("blob_key").execute();
    expect(values).toHaveLength(3);
    for (const { blob_key: key } of values)
      expect(await text((await blobs.get(key!))!.stream)).toBe(`content of ${key}`);
    await storage.close();
    await connected.close();
  });
});

describe("a damaged archive", () => {
  it("is refused with the name of the damaged part, whichever byte is flipped", async () => {
    const files = Object.keys(contentOf(archive));
    expect(files.length).toBeGreaterThan(50);
    for (const [index, file] of files.entries()) {
      const path = join(archive, file);
      const whole = readFileSync(path);
      const at = (index * 7919) % whole.length;
      writeFileSync(
        path,
        whole.map((byte, position) => (position === at ? byte ^ 1 : byte)),
      );
      const part = file === "/manifest.sha256" ? "manifest.json" : file.slice(1);
      await expect(verify(backupAt(archive)), file).rejects.toThrow(
        `The backup is damaged: ${part} does not match`,
      );
      writeFileSync(path, whole);
    }
    const [first] = files;
    const path = join(archive, first!);
    const whole = readFileSync(path);
    writeFileSync(path, whole.subarray(1));
    await expect(verify(backupAt(archive))).rejects.toThrow(
      `${first!.slice(1)} has ${whole.length - 1} bytes instead of`,
    );
    rmSync(path);
    await expect(restoreTo(archive, fresh())).rejects.toThrow(`${first!.slice(1)} is missing`);
    writeFileSync(path, whole);
    await verify(backupAt(archive));
  });

  it("of a newer schema is refused with the version to install", async () => {
    const newer = await backUpOf(urlOf(dataDir), dataDir);
    const { manifest } = await openBackup(backupAt(newer));
    const text = manifestText({ ...manifest, schema: "9999-later", written_by: "7.0.1" });
    writeFileSync(join(newer, "manifest.json"), text);
    writeFileSync(join(newer, "manifest.sha256"), digestLine(text));
    await expect(verify(backupAt(newer))).rejects.toThrow("Install Selvedge 7.0.1 or newer.");
  });
});

describe("refuses", () => {
  it("a target that has files, and keeps them", async () => {
    const before = contentOf(archive);
    await expect(backUpOf(urlOf(dataDir), dataDir, archive)).rejects.toThrow("Expected no files at");
    expect(contentOf(archive)).toEqual(before);
  });

  it("to restore over data, and keeps them", async () => {
    const before = contentOf(dataDir);
    for (const url of [urlOf(dataDir), await postgres.createDatabase()])
      await expect(restoreTo(archive, dataDir, url)).rejects.toThrow("Expected an empty data folder");
    expect(contentOf(dataDir)).toEqual(before);
  });

  it("a database with rows, or with tables of others", async () => {
    const url = await postgres.createDatabase();
    const storage = await openStorage(url);
    await storage.read.insertInto("meta").values({ key: "pepper", value: "x" }).execute();
    const folder = fresh();
    await expect(restoreTo(archive, folder, url)).rejects.toThrow("it has rows in the table meta");
    await storage.read.deleteFrom("meta").execute();
    await storage.close();
    await restoreTo(archive, folder, url); // empty again

    const other = await postgres.createDatabase();
    const foreign = await openStorage(other);
    await sql`drop table kysely_migration`.execute(foreign.read);
    await foreign.close();
    await expect(restoreTo(archive, fresh(), other)).rejects.toThrow("Expected an empty database but it has");
  });

  it("to start on what an unfinished restore left, until a restore finishes", async () => {
    const folder = fresh();
    await restoreTo(archive, folder);
    mkdirSync(join(folder, ".restoring"));
    await expect(openStorage(urlOf(folder))).rejects.toThrow("did not finish");
    await restoreTo(archive, folder);
    await (await openStorage(urlOf(folder))).close();

    const url = await postgres.createDatabase();
    const storage = await openStorage(url);
    await storage.read.insertInto("meta").values({ key: "restoring", value: "" }).execute();
    await storage.close();
    await expect(openStorage(url)).rejects.toThrow("did not finish");
    await restoreTo(archive, fresh(), url);
    await (await openStorage(url)).close();
  });
});

describe("blobs that change meanwhile", () => {
  it("leave a row that was replaced as it is now, and leave out a row that was deleted", async () => {
    const from = await filledFolder();
    const blobs = blobsOf(from);
    const storage = await openStorage(urlOf(from));
    const source = await openSource(urlOf(from));
    const [replaced, deleted, lost] = [0, 1, 2].map((row) => filledBlob("kv_entries", row));
    const target = fresh();
    let isChanged = false;
    // The first blob is read after the snapshot of the rows has ended.
    const changing = Object.assign(Object.create(blobs) as FileBlobs, {
      get: async (key: string) => {
        if (!isChanged) {
          isChanged = true;
          const update = { value: null, blob_key: "kv_entries/new" };
          await blobs.put("kv_entries/new", Buffer.from("new content"));
          await storage.write(async (trx) => {
            await trx.updateTable("kv_entries").set(update).where("blob_key", "=", replaced!).execute();
            await trx.deleteFrom("kv_entries").where("blob_key", "=", deleted!).execute();
          });
          for (const each of [replaced, deleted, lost]) await blobs.delete(each!);
        }
        return blobs.get(key);
      },
    });
    const manifest = await backUp({ source, blobs: changing, dataDir: from, target: backupAt(target) });
    await source.close();
    await storage.close();
    expect(manifest).toMatchObject({ amended: 2, missing_blobs: [lost] });
    await verify(backupAt(target));
    const folder = fresh();
    await restoreTo(target, folder);
    const restored = await openStorage(urlOf(folder));
    const rows = await restored.read.selectFrom("kv_entries").select("blob_key").execute();
    expect(new Set(rows.map((row) => row.blob_key))).toEqual(new Set(["kv_entries/new", lost]));
    await restored.close();
    expect(readFileSync(blobsOf(folder).path("kv_entries/new"), "utf8")).toBe("new content");
  });
});

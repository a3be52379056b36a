import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { UnusableDatabase } from "./faults.ts";

/**
 * Tables that may hold millions of rows of customers' data. Starting does not read them, so a start checks
 * them only in files below a size.
 */
const bulkTables: ReadonlySet<string> = new Set([
  "kv_entries",
  "queue_messages",
  "script_modules",
  "workflow_events",
  "workflow_instances",
  "workflow_journal",
]);
/** Checking this much takes about 0.2 s of CPU. */
const bulkBytesMax = 256 * 1024 * 1024;
/** No further table is checked after this time. */
const checkMs = 2000;
/** SQLite's codes for a malformed database and for a file that is not a database. */
const damageErrcodes: ReadonlySet<number> = new Set([11, 26]);

/** Throws if a database's file is empty although its data folder has been used, as after an unfinished copy. */
export function refuseEmptyFile(path: string): void {
  if (!existsSync(path) || statSync(path).size > 0) return;
  const blobs = join(dirname(path), "blobs");
  if (existsSync(blobs) && readdirSync(blobs).length > 0) throw damaged(path, "it is empty");
}

/**
 * Checks the tables that a start reads, and all others in a small file, for damage. Copies of a file that was in
 * use are often damaged.
 */
export function checkTables(path: string, database: DatabaseSync): void {
  const isSmall = path === ":memory:" || statSync(path).size <= bulkBytesMax;
  const startedMs = performance.now();
  const tables = database
    .prepare("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'")
    .all()
    .map(({ name }) => name as string)
    .filter((name) => isSmall || !bulkTables.has(name));
  for (const table of tables) {
    if (performance.now() - startedMs > checkMs) return;
    const [found] = database.prepare(`pragma quick_check("${table}")`).all();
    const result = Object.values(found ?? {})[0];
    if (result !== "ok") throw damaged(path, `in the table ${table}: ${String(result)}`);
  }
}

/** Runs `work`. Replaces an error that shows a damaged file by one that tells the operator what to do. */
export function explainingDamage<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    const { errcode, errstr } = error as { errcode?: number; errstr?: string };
    if (errcode === undefined || !damageErrcodes.has(errcode & 0xff)) throw error;
    throw damaged(path, errstr ?? "it cannot be read", error);
  }
}

const damaged = (path: string, how: string, cause?: unknown): UnusableDatabase =>
  new UnusableDatabase(
    `The database ${path} is damaged: ${how}. If it was copied, copy it again with selvedge backup, because a file ` +
      "in use cannot be copied. Otherwise restore a backup into a new data folder with selvedge restore.",
    { cause },
  );

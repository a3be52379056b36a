import type { Manifest } from "./manifest.ts";
import { parentsFirst, tablesOf, type Table } from "./model.ts";
import type { Archive } from "../archive/archive.ts";
import { damaged } from "../archive/errors.ts";
import { readLines } from "../archive/parts.ts";
import { rowOf, type Row } from "./rows.ts";

/** A database that an archive is restored into. */
export interface Target {
  /** Throws if the database is not empty. */
  refuseUnlessEmpty(tables: readonly Table[]): Promise<void>;
  /** Makes the tables of a schema version, and marks the database as unfinished. */
  prepare(schema: string): Promise<void>;
  /** Runs `work` in one transaction. */
  load(work: (loader: Loader) => Promise<void>): Promise<void>;
  /** Migrates to the current schema. */
  migrate(): Promise<void>;
  /** Removes the mark: the database can be used. */
  finish(): Promise<void>;
  close(): Promise<void>;
}

export interface Loader {
  insert(table: Table, rows: readonly Row[]): Promise<void>;
  /** Continues the numbers of a table after the given one. */
  countFrom(table: Table, highest: number): Promise<void>;
}

const rowsPerInsert = 500;
const bytesPerInsert = 1024 * 1024;

/** Loads all tables of an archive. Throws a BackupError if a table is damaged. */
export async function loadTables(
  files: Archive,
  manifest: Manifest,
  target: Target,
  onRows: (count: number) => void = () => {},
): Promise<void> {
  const tables = await tablesOf(manifest.schema);
  await target.load(async (loader) => {
    for (const table of parentsFirst(tables)) {
      const part = manifest.tables.find(({ name }) => name === table.name);
      if (part === undefined) throw damaged(`table ${table.name}`, "is missing");
      let count = 0;
      for await (const rows of batches(table, readLines(files, part))) {
        await loader.insert(table, rows);
        count += rows.length;
        onRows(rows.length);
      }
      if (count !== part.rows) throw damaged(part.path, `has ${count} rows instead of ${part.rows}`);
      if (part.highest_number !== undefined) await loader.countFrom(table, part.highest_number);
    }
  });
}

async function* batches(table: Table, lines: AsyncIterable<string>): AsyncGenerator<Row[]> {
  let rows: Row[] = [];
  let bytes = 0;
  for await (const line of lines) {
    rows.push(rowOf(table, line));
    bytes += line.length;
    if (rows.length < rowsPerInsert && bytes < bytesPerInsert) continue;
    yield rows;
    [rows, bytes] = [[], 0];
  }
  if (rows.length > 0) yield rows;
}

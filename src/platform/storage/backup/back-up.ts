import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { schemaVersions } from "../migrations/migrate.ts";
import { orphanAgeMs, type Blobs } from "../blobs.ts";
import { programVersion } from "../migrations/program-version.ts";
import { amendedLines, copyBlobs, type Deviations } from "./copy-blobs.ts";
import { BackupError } from "./errors.ts";
import { writeManifest, type Manifest, type Part } from "./manifest.ts";
import { leftOutTables, tablesOf, type Table } from "./model.ts";
import { writeLines, writePart } from "./parts.ts";
import { lineOf, namesBlobs } from "./rows.ts";
import type { Snapshot, Source } from "./source.ts";

export interface Progress {
  step: "tables" | "blobs" | "files" | "reading" | "restoring";
  /** Rows or blobs that are done. */
  done: number;
  bytes: number;
}

export interface BackupInput {
  source: Source;
  blobs: Blobs;
  /** Folder of the files that are archived besides the database and the blobs. */
  dataDir: string;
  /** Path of the archive, which must not exist yet. */
  target: string;
  onProgress?: (progress: Progress) => void;
}

export const partialPattern = /\.partial-[0-9a-f]{8}$/;
/** Files in the data folder that cannot be made again: clients trust the local authority. */
const fileFolders = ["tls"];
const leftOut = ["finished pictures and other caches", "logs", "leases and live sessions of nodes"];

/**
 * Writes an archive. It is written beside the target and renamed when it is complete and on disk, so the target
 * is absent or whole. Order: rows, blobs that they name, files, manifest.
 */
export async function backUp(input: BackupInput): Promise<Manifest> {
  const target = resolve(input.target);
  await checkTarget(target);
  await removeAbandoned(dirname(target));
  const folder = `${target}.partial-${randomBytes(4).toString("hex")}`;
  await mkdir(folder, { mode: 0o700 });
  try {
    const manifest = await write(input, folder);
    await syncFolders(folder);
    await rename(folder, target);
    await syncFolder(dirname(target));
    return manifest;
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

async function write(input: BackupInput, folder: string): Promise<Manifest> {
  const { source, onProgress } = input;
  const schema = await archivedSchema(source);
  const tables = await tablesOf(schema);
  let createdOn = new Date();
  const progress: Progress = { step: "tables", done: 0, bytes: 0 };
  const archived = await source.snapshot(async (snapshot) => {
    createdOn = new Date();
    const parts: Manifest["tables"] = [];
    for (const table of tables) {
      const part = await writeTable(snapshot, folder, table);
      progress.done += part.rows;
      progress.bytes += part.bytes;
      onProgress?.(progress);
      parts.push(part);
    }
    return parts;
  });
  const { blobs, amended, missing } = await writeBlobs(input, folder, tables, archived);
  const manifest: Manifest = {
    format: 1,
    written_by: programVersion,
    engine: source.engine,
    schema,
    created_on: createdOn.toISOString(),
    tables: archived,
    blobs,
    files: await writeFiles(input.dataDir, folder),
    amended,
    missing_blobs: missing,
    left_out: [...leftOut, `tables ${leftOutTables.join(", ")}`],
  };
  await writeManifest(folder, manifest);
  return manifest;
}

async function archivedSchema(source: Source): Promise<string> {
  const schemas = await source.schemas();
  const schema = schemas.at(-1);
  if (schema === undefined) throw new BackupError("Expected a database of Selvedge but it has no schema.");
  if (!schemaVersions.includes(schema))
    throw new BackupError(
      `The database has the schema ${schema}, which Selvedge ${programVersion} does not know. ` +
        "Run the backup with the version that the nodes run.",
    );
  return schema;
}

const tablePath = (table: Table): string => `tables/${table.name}.ndjson.zst`;

async function writeTable(
  snapshot: Snapshot,
  folder: string,
  table: Table,
): Promise<Manifest["tables"][number]> {
  const lines = async function* (): AsyncGenerator<string> {
    for await (const batch of snapshot.rows(table)) for (const row of batch) yield lineOf(table, row);
  };
  const part = await writeLines(folder, tablePath(table), lines());
  const numbers = table.isNumbered ? { highest_number: await snapshot.highestNumber(table) } : {};
  return { name: table.name, ...part, ...numbers };
}

/** Copies the blobs, and replaces the parts of tables whose rows had to be amended. */
async function writeBlobs(
  input: BackupInput,
  folder: string,
  tables: readonly Table[],
  archived: Manifest["tables"],
): Promise<{ blobs: Manifest["blobs"]; amended: number; missing: string[] }> {
  const progress: Progress = { step: "blobs", done: 0, bytes: 0 };
  const deviations: Deviations = { amended: new Map(), missing: [] };
  let amended = 0;
  const lines = async function* (): AsyncGenerator<string> {
    for (const [index, table] of tables.entries()) {
      if (!namesBlobs(table)) continue;
      for await (const part of copyBlobs({ ...input, folder }, table, archived[index]!, deviations)) {
        progress.done += 1;
        progress.bytes += part.bytes;
        input.onProgress?.(progress);
        yield `${JSON.stringify(part)}\n`;
      }
      if (deviations.amended.size === 0) continue;
      archived[index] = await amendTable(folder, table, archived[index]!, deviations.amended);
      amended += deviations.amended.size;
      deviations.amended.clear();
    }
  };
  const { rows, ...part } = await writeLines(folder, "blobs.ndjson.zst", lines());
  const blobs = { ...part, count: rows, total_bytes: progress.bytes };
  return { blobs, amended, missing: deviations.missing };
}

async function amendTable(
  folder: string,
  table: Table,
  archived: Manifest["tables"][number],
  amended: Deviations["amended"],
): Promise<Manifest["tables"][number]> {
  const lines = amendedLines(folder, table, archived, amended);
  const part = await writeLines(folder, `${tablePath(table)}.amended`, lines);
  await rename(join(folder, part.path), join(folder, archived.path));
  return { ...archived, ...part, path: archived.path };
}

async function writeFiles(dataDir: string, folder: string): Promise<Part[]> {
  const parts: Part[] = [];
  for (const name of fileFolders) {
    const entries = await readdir(join(dataDir, name), { withFileTypes: true }).catch(() => []);
    for (const entry of entries.filter((each) => each.isFile())) {
      const path = `${name}/${entry.name}`;
      parts.push(await writePart(folder, `files/${path}`, createReadStream(join(dataDir, path))));
    }
  }
  return parts;
}

/** Refuses a target that exists, or that no folder can be renamed to. */
async function checkTarget(target: string): Promise<void> {
  const parent = await stat(dirname(target)).catch(() => undefined);
  if (parent === undefined) throw new BackupError(`Expected the folder ${dirname(target)} to exist.`);
  const found = await stat(target).catch(() => undefined);
  if (found === undefined) return;
  if (!found.isDirectory() || (await readdir(target)).length > 0)
    throw new BackupError(`Expected no files at ${target}. Give each backup a name of its own.`);
  if (found.dev !== parent.dev)
    throw new BackupError(`Expected a new folder within ${target}, which is a file system of its own.`);
}

/** Removes what backups left behind that were killed. */
async function removeAbandoned(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    if (!partialPattern.test(basename(name))) continue;
    const { mtimeMs } = await stat(join(parent, name));
    if (mtimeMs < Date.now() - orphanAgeMs) await rm(join(parent, name), { recursive: true, force: true });
  }
}

/** Flushes a folder and all folders in it, which makes their entries durable. */
async function syncFolders(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true }))
    if (entry.isDirectory()) await syncFolders(join(folder, entry.name));
  await syncFolder(folder);
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

import { createReadStream } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { schemaVersions } from "../migrations/migrate.ts";
import type { Archive, Part } from "../archive/archive.ts";
import { BackupError } from "../archive/errors.ts";
import { writePartList } from "../archive/part-list.ts";
import { writeLines, writePart } from "../archive/parts.ts";
import type { Blobs } from "../blobs.ts";
import { programVersion } from "../program-version.ts";
import { amendedLines, copyBlobs, type Deviations } from "./copy-blobs.ts";
import { copyObjects, objectsOfFolder, type ObjectFilesToCopy } from "./copy-objects.ts";
import { manifestText, type BackupAt, type Manifest } from "./manifest.ts";
import { leftOutTables, tablesOf, type Table } from "./model.ts";
import { NamedRows } from "./named-rows.ts";
import { rowLine, namesBlobs } from "./rows.ts";
import type { Snapshot, Source } from "./source.ts";

/** The progress of a backup, a check or a restore. */
export interface Progress {
  step: "tables" | "blobs" | "objects" | "files" | "reading" | "restoring";
  /** Number of rows, blobs or databases of objects that are done. */
  done: number;
  bytes: number;
}

export interface BackupInput {
  source: Source;
  blobs: Blobs;
  /** Folder of the files that are archived besides the database and the blobs. */
  dataDir: string;
  /** The objects at the moment of the snapshot; by default those of the data folder. */
  objectsAt?: (snapshot: Snapshot) => Promise<ObjectFilesToCopy>;
  /** Must not exist yet. */
  target: BackupAt;
  onProgress?: (progress: Progress) => void;
}

/** Folders in the data folder with files that cannot be made again: clients trust the local authority. */
const fileFolders = ["tls"];
const leftOut = ["finished pictures and other caches", "logs", "leases and live sessions of nodes"];

/** Makes a complete backup, or none. Order: rows, blobs that they name, objects, files, manifest. */
export async function backUp(input: BackupInput): Promise<Manifest> {
  const { store, name } = input.target;
  const archive = await store.begin(name);
  try {
    const manifest = await write(input, archive.files);
    await archive.complete(manifestText(manifest));
    return manifest;
  } catch (error) {
    await archive.discard().catch(() => {}); // otherwise a later backup removes the files
    throw error;
  }
}

async function write(input: BackupInput, files: Archive): Promise<Manifest> {
  const { source, onProgress } = input;
  const schema = await archivedSchema(source);
  const tables = await tablesOf(schema);
  let createdOn = new Date();
  const progress: Progress = { step: "tables", done: 0, bytes: 0 };
  await using named = await NamedRows.create();
  let objects = objectsOfFolder(input.dataDir);
  const archived = await source.snapshot(async (snapshot) => {
    createdOn = new Date();
    if (input.objectsAt !== undefined) objects = await input.objectsAt(snapshot);
    const parts: Manifest["tables"] = [];
    for (const table of tables) {
      const onLine = (line: string): void => {
        progress.done += 1;
        progress.bytes += line.length;
        onProgress?.(progress);
      };
      parts.push(await writeTable(snapshot, files, { table, named, onLine }));
    }
    return parts;
  });
  const { blobs, amended, missing } = await writeBlobs(input, files, { tables, archived, named });
  return {
    format: 1,
    written_by: programVersion,
    engine: source.engine,
    schema,
    created_on: createdOn.toISOString(),
    tables: archived,
    blobs,
    objects: await copyObjects(objects, files, source.pace, onProgress),
    files: await writeFiles(input.dataDir, files),
    amended,
    missing_blobs: missing,
    left_out: [...leftOut, `tables ${leftOutTables.join(", ")}`],
  };
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

async function writeTable(
  snapshot: Snapshot,
  files: Archive,
  { table, named, onLine }: { table: Table; named: NamedRows; onLine: (line: string) => void },
): Promise<Manifest["tables"][number]> {
  const lines = async function* (): AsyncGenerator<string> {
    for await (const batch of snapshot.rows(table))
      for (const row of batch) {
        const line = rowLine(table, row);
        await named.note(table, row, line);
        onLine(line);
        yield line;
      }
  };
  const part = await writeLines(files, `tables/${table.name}.ndjson.zst`, lines());
  const numbers = table.isNumbered ? { highest_number: await snapshot.highestNumber(table) } : {};
  return { name: table.name, ...part, ...numbers };
}

interface Written {
  tables: readonly Table[];
  archived: Manifest["tables"];
  named: NamedRows;
}

/** Copies the blobs, and replaces the parts of tables whose rows had to be amended. */
async function writeBlobs(
  input: BackupInput,
  files: Archive,
  { tables, archived, named }: Written,
): Promise<{ blobs: Manifest["blobs"]; amended: number; missing: string[] }> {
  const progress: Progress = { step: "blobs", done: 0, bytes: 0 };
  const deviations: Deviations = { amended: new Map(), missing: [] };
  let amended = 0;
  const parts = async function* (): AsyncGenerator<Part> {
    for (const [index, table] of tables.entries()) {
      if (!namesBlobs(table)) continue;
      for await (const part of copyBlobs({ ...input, files }, table, named.linesOf(table), deviations)) {
        progress.done += 1;
        progress.bytes += part.bytes;
        input.onProgress?.(progress);
        yield part;
      }
      if (deviations.amended.size === 0) continue;
      archived[index] = await amendTable(files, table, archived[index]!, deviations.amended);
      amended += deviations.amended.size;
      deviations.amended.clear();
    }
  };
  const blobs = await writePartList(files, "blobs.ndjson.zst", parts());
  return { blobs, amended, missing: deviations.missing };
}

/** Writes a table again under another name, because files of an archive are written once. */
async function amendTable(
  files: Archive,
  table: Table,
  archived: Manifest["tables"][number],
  amended: Deviations["amended"],
): Promise<Manifest["tables"][number]> {
  const lines = amendedLines(files, table, archived, amended);
  const part = await writeLines(files, `tables/${table.name}.amended.ndjson.zst`, lines);
  await files.remove(archived.path);
  return { ...archived, ...part };
}

async function writeFiles(dataDir: string, files: Archive): Promise<Part[]> {
  const parts: Part[] = [];
  for (const name of fileFolders) {
    const entries = await readdir(join(dataDir, name), { withFileTypes: true }).catch(() => []);
    for (const entry of entries.filter((each) => each.isFile())) {
      const path = `${name}/${entry.name}`;
      parts.push(await writePart(files, `files/${path}`, createReadStream(join(dataDir, path))));
    }
  }
  return parts;
}

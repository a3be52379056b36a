import { open, rename, rm, type FileHandle } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { Kysely } from "kysely";
import type { Archive } from "../storage/archive/archive.ts";
import { BackupError, damaged } from "../storage/archive/errors.ts";
import { FolderArchive } from "../storage/archive/folder.ts";
import { readCompressed, readPart } from "../storage/archive/parts.ts";
import type { Progress } from "../storage/backup/back-up.ts";
import { inEmptyFolder } from "../storage/backup/claim.ts";
import { leftOutTables, tablesOf } from "../storage/backup/model.ts";
import { blobOf, namesBlobs, type Row } from "../storage/backup/rows.ts";
import type { Blobs } from "../storage/blobs.ts";
import { syncPath } from "../storage/durability.ts";
import { appliedMigrations, migrate, schemaVersions, tooNew } from "../storage/migrations/migrate.ts";
import type { Database } from "../storage/schema.ts";
import { sqliteDialect } from "../storage/sqlite.ts";
import { parseBlobPath } from "./blob-shipper.ts";
import { blobsFolder, chainNames, readChain, readSegment, segmentsOf, type Chain } from "./chain.ts";
import { before, endOf, frameHeaderBytes, type Mark, type Position, type Segment } from "./segment.ts";

export interface RestoreLogInput {
  /** The store that the log was shipped to. */
  files: Archive;
  /** Undefined for the last commit that was shipped. */
  toMs: number | undefined;
  dataDir: string;
  databasePath: string;
  blobs: Blobs;
  /** Restores further content of the data folder, before a node can start there. */
  also?: () => Promise<void>;
  onProgress?: (progress: Progress) => void;
}

/** The result of a restore from the log of changes. */
export interface RestoredLog {
  /** Wall-clock time of the restored state: the database has no later commit. */
  restoredMs: number;
  blobs: number;
  /** Blobs that rows name and that were not shipped. */
  missingBlobs: string[];
}

/** Tables about running nodes, which are empty after a restore. */
const emptied = leftOutTables.filter((name) => !/^(kysely_migration|schema_info)/.test(name));

/** Restores a SQLite installation into an empty data folder, as it was at a time. Throws BackupError. */
export async function restoreLog(input: RestoreLogInput): Promise<RestoredLog> {
  const { files, dataDir, databasePath } = input;
  const { name, chain } = await chainAt(files, input.toMs);
  const to = await positionAt(files, name, chain, input.toMs);
  return inEmptyFolder(dataDir, async () => {
    const partial = `${databasePath}.restoring`;
    try {
      await writeDatabase(input, partial, { name, chain, to });
      const found = await completeDatabase(input, partial);
      const folder = new FolderArchive(dataDir);
      for (const part of chain.files)
        await folder.write(part.path.replace(/^.*\/files\//, ""), readPart(files, part));
      await input.also?.();
      await syncPath(partial);
      await rename(partial, databasePath);
      await syncPath(dataDir);
      return { restoredMs: to.ms, ...found };
    } finally {
      await rm(partial, { force: true });
    }
  });
}

/** The last chain that began before a time. */
async function chainAt(files: Archive, toMs: number | undefined): Promise<{ name: string; chain: Chain }> {
  let earliestMs: number | undefined;
  for (const name of (await chainNames(files)).toReversed()) {
    const chain = await readChain(files, name);
    if (chain === undefined) continue;
    if (toMs === undefined || chain.startedMs <= toMs) return { name, chain };
    earliestMs = Math.min(earliestMs ?? Infinity, chain.startedMs);
  }
  if (earliestMs === undefined)
    throw new BackupError(`Expected the log of a database at ${files.shown}, but there is none.`);
  throw new BackupError(
    `Expected a time from ${new Date(earliestMs).toISOString()} on, which is the earliest at ${files.shown}.`,
  );
}

/** The last commit of a chain at or before a time. */
async function positionAt(
  files: Archive,
  name: string,
  { at, startedMs }: Chain,
  toMs = Infinity,
): Promise<Mark> {
  const segments = await segmentsOf(files, name);
  let found: Mark = { ...at, ms: startedMs };
  // A commit is in the next segment that was copied after it, and its time in that segment or the following one.
  const last = segments.findLastIndex((_, index) => (segments[index - 1]?.copiedMs ?? startedMs) <= toMs);
  for (const segment of segments.slice(Math.max(0, last - 1), last + 3)) {
    const read = await readSegment(files, segment);
    const marks = [...read.marks, { ms: read.copiedMs, ...endOf(read) }];
    for (const mark of marks) if (mark.ms <= toMs && before(found, mark)) found = mark;
  }
  return found;
}

/** Writes the copy of the database, and then the pages of all frames up to a position. */
async function writeDatabase(
  { files, onProgress }: RestoreLogInput,
  path: string,
  { name, chain, to }: { name: string; chain: Chain; to: Position },
): Promise<void> {
  await rm(path, { force: true });
  const file = await open(path, "wx+", 0o600);
  const progress: Progress = { step: "restoring", done: 0, bytes: 0 };
  try {
    for await (const chunk of readCompressed(files, chain.base)) {
      await file.appendFile(chunk);
      progress.bytes += chunk.length;
      onProgress?.(progress);
    }
    let end: Position = { generation: 1, frame: 0 };
    let pages: number | undefined;
    for (const each of await segmentsOf(files, name)) {
      const segment = await readSegment(files, each);
      if (segment.generation > to.generation) break;
      if (segment.generation === to.generation && segment.first > to.frame) continue; // needed only for its times
      const isNext =
        end.frame === 0 || segment.generation !== end.generation || segment.first === end.frame + 1;
      if (!isNext || segment.pageBytes !== chain.pageBytes) throw damaged(each.path, "does not fit");
      pages = (await writeFrames(file, segment, to)) ?? pages;
      end = endOf(segment);
      progress.done += 1;
      onProgress?.(progress);
    }
    if (pages !== undefined) await file.truncate(pages * chain.pageBytes);
    if (before(end, to) && before(chain.at, to)) throw damaged(`the log of ${name}`, "ends too early");
  } finally {
    await file.close();
  }
}

/**
 * Writes the pages of a segment's frames, up to a position. Returns the size of the database in pages after
 * the last commit.
 */
async function writeFrames(file: FileHandle, segment: Segment, to: Position): Promise<number | undefined> {
  const { frames, pageBytes, generation, first } = segment;
  const frameBytes = frameHeaderBytes + pageBytes;
  let pages: number | undefined;
  for (let at = 0, frame = first; at < frames.length; at += frameBytes, frame++) {
    if (before(to, { generation, frame })) break;
    const page = frames.readUInt32BE(at);
    pages = frames.readUInt32BE(at + 4) || pages; // 0 unless the frame is the last of a commit
    await file.write(frames, at + frameHeaderBytes, pageBytes, (page - 1) * pageBytes);
  }
  return pages;
}

/** Checks the database, copies the blobs that its rows name, and migrates it. */
async function completeDatabase(
  input: RestoreLogInput,
  path: string,
): Promise<{ blobs: number; missingBlobs: string[] }> {
  const database = new DatabaseSync(path, { enableForeignKeyConstraints: true });
  const read = new Kysely<Database>({ dialect: sqliteDialect(database) });
  try {
    const [checked] = database.prepare("pragma quick_check").all();
    const result = String(Object.values(checked ?? {})[0]);
    if (result !== "ok") throw damaged("the database", `is not whole: ${result}`);
    const schema = (await appliedMigrations({ read, engine: "sqlite" })).at(-1)!;
    if (!schemaVersions.includes(schema)) throw new BackupError(tooNew("The shipped log", schema, undefined));
    database.exec("pragma journal_mode = delete");
    const found = await copyBlobs(input, database, schema);
    for (const table of emptied)
      if (database.prepare("select 1 from sqlite_master where name = ?").get(table) !== undefined)
        database.exec(`delete from "${table}"`);
    await migrate({ read, engine: "sqlite" });
    return found;
  } finally {
    await read.destroy();
  }
}

async function copyBlobs(
  { files, blobs, onProgress }: RestoreLogInput,
  database: DatabaseSync,
  schema: string,
): Promise<{ blobs: number; missingBlobs: string[] }> {
  const shipped = new Map<string, { path: string; digest: string; sizeBytes: number }>();
  for await (const { path, sizeBytes } of files.list(blobsFolder)) {
    const parsed = parseBlobPath(path);
    if (parsed !== undefined) shipped.set(parsed.key, { path, sizeBytes, digest: parsed.digest });
  }
  const progress: Progress = { step: "blobs", done: 0, bytes: 0 };
  const missingBlobs: string[] = [];
  for (const table of (await tablesOf(schema)).filter(namesBlobs))
    for (const row of database.prepare(`select * from "${table.name}"`).iterate()) {
      const key = blobOf(table, row as Row);
      if (key === null) continue;
      const found = shipped.get(key);
      if (found === undefined) {
        if ((await blobs.head(key)) === undefined) missingBlobs.push(key); // it may be in a bucket
        continue;
      }
      await blobs.put(
        key,
        readPart(files, { path: found.path, bytes: found.sizeBytes, sha256: found.digest }),
      );
      progress.done += 1;
      progress.bytes += found.sizeBytes;
      onProgress?.(progress);
    }
  return { blobs: progress.done, missingBlobs };
}

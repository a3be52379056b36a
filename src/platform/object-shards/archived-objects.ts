import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encryptionOf } from "../backup-encryption.ts";
import { ConfigError } from "../config/config.ts";
import type { Config } from "../config/settings.ts";
import { openLogFiles } from "../log-shipping/log-files.ts";
import { logPrefix } from "../object-log/segment.ts";
import { otherStore, storeKey, storeMarkOf, usedStore } from "../object-log/shared-store.ts";
import { openArchiveStore } from "../open-archive-store.ts";
import type { Archive, ArchiveStore } from "../storage/archive/archive.ts";
import {
  objectsOfFolder,
  type ObjectFilesToCopy,
  type RestoredObjectFiles,
} from "../storage/backup/copy-objects.ts";
import { sharedTable } from "../storage/backup/model.ts";
import type { Snapshot, Source } from "../storage/backup/source.ts";
import { connectPostgres } from "../storage/storage.ts";
import { ObjectsInLog } from "./objects-in-log.ts";
import { ObjectsIntoLog } from "./objects-into-log.ts";

/** The migration with the tables of the log that nodes share. */
const firstSchema = "0031-object-shards";

const valuesTable = sharedTable("node_values", [
  { name: "name", type: "text" },
  { name: "value", type: "text" },
]);

/**
 * The objects of an installation at a moment: of nodes on PostgreSQL from the log that they share, of others from the
 * data folder.
 */
export async function withObjectsAt<T>(
  config: Config,
  { source, dataDir }: { source: Source; dataDir: string },
  work: (objectsAt: (snapshot: Snapshot) => Promise<ObjectFilesToCopy>) => Promise<T>,
): Promise<T> {
  await using closing = new AsyncDisposableStack();
  const hasTables = source.engine === "postgres" && (await source.schemas()).includes(firstSchema);
  return await work(async (snapshot) => {
    const mark = hasTables ? await markIn(snapshot) : undefined;
    if (mark === undefined) return objectsOfFolder(dataDir);
    const { archives, files } = await openLog(config, closing, { isWriter: false });
    if ((await storeMarkOf(archives)) !== mark) throw otherStore(archives);
    const objects = await ObjectsInLog.at(snapshot, files, folderIn(closing), source);
    closing.defer(async () => objects.close());
    return objects;
  });
}

/**
 * Restores objects for nodes on PostgreSQL into the log that they share. Undefined if the settings name none. Throws
 * BackupError if another installation uses the location.
 */
export async function withObjectsInto<T>(
  config: Config,
  databaseUrl: string,
  work: (objectsInto: (() => RestoredObjectFiles) | undefined) => Promise<T>,
): Promise<T> {
  if (databaseUrl.startsWith("sqlite:") || config.objectLog === undefined) return work(undefined);
  await using closing = new AsyncDisposableStack();
  const { archives, files } = await openLog(config, closing, { isWriter: true });
  if ((await storeMarkOf(archives)) !== undefined) throw usedStore(archives);
  const storage = await connectPostgres(databaseUrl);
  closing.defer(async () => storage.close());
  const aside = folderIn(closing);
  return await work(() => new ObjectsIntoLog({ read: storage.read, files, archives, aside }));
}

async function markIn(snapshot: Snapshot): Promise<string | undefined> {
  let mark: string | undefined;
  for await (const rows of snapshot.rows(valuesTable))
    for (const { name, value } of rows) if (name === storeKey) mark = value as string;
  return mark;
}

async function openLog(
  config: Config,
  closing: AsyncDisposableStack,
  { isWriter }: { isWriter: boolean },
): Promise<{ archives: Archive; files: Archive }> {
  if (config.backupFolder === undefined)
    throw new ConfigError(
      "Expected the setting --backup-folder of the nodes, which ship the objects and D1 databases there",
    );
  const store: ArchiveStore = await openArchiveStore(config.backupFolder, config, "--backup-folder");
  closing.defer(async () => store.close());
  const options = { isWriter, prefix: logPrefix };
  return { archives: store.files, files: await openLogFiles(store.files, encryptionOf(config), options) };
}

function folderIn(closing: AsyncDisposableStack): string {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-objects-"));
  closing.defer(() => rmSync(folder, { recursive: true }));
  return folder;
}

import type { Archive } from "../archive/archive.ts";
import { FolderArchive } from "../archive/folder.ts";
import { readPartList } from "../archive/part-list.ts";
import { readPart } from "../archive/parts.ts";
import type { Blobs } from "../blobs.ts";
import type { Progress } from "./back-up.ts";
import { inEmptyFolder } from "./claim.ts";
import { blobPath } from "./copy-blobs.ts";
import type { BackupAt, Manifest } from "./manifest.ts";
import { tablesOf } from "./model.ts";
import { loadTables, type Target } from "./target.ts";
import { postgresTarget } from "./target-postgres.ts";
import { sqliteTarget } from "./target-sqlite.ts";
import { objectsIntoFolder, restoreObjects, type RestoredObjectFiles } from "./copy-objects.ts";
import { verifyParts } from "./verify.ts";

export interface RestoreInput {
  archive: BackupAt;
  /** "sqlite:PATH" or "postgres://…". */
  databaseUrl: string;
  blobs: Blobs;
  dataDir: string;
  /** Where objects are restored to; by default into the data folder. Called when the database has its tables. */
  objectsInto?: (() => RestoredObjectFiles) | undefined;
  onProgress?: (progress: Progress) => void;
}

/**
 * Restores an archive into an empty data folder and an empty database. The archive is verified before anything
 * is written. Order: rows, blobs, objects, files. Until the end, no node starts with the folder or the database.
 */
export async function restore(input: RestoreInput): Promise<Manifest> {
  const { archive, dataDir, databaseUrl, onProgress } = input;
  const { files, manifest } = await verifyParts(archive, onProgress);
  const target = databaseUrl.startsWith("sqlite:")
    ? sqliteTarget(databaseUrl.slice("sqlite:".length))
    : postgresTarget(databaseUrl);
  try {
    await inEmptyFolder(dataDir, async () => {
      await target.refuseUnlessEmpty(await tablesOf(manifest.schema));
      await write(input, files, manifest, target);
    });
    return manifest;
  } finally {
    await target.close();
  }
}

/** Rows go first, because the database may be the store of the blobs, which its migrations make. */
async function write(input: RestoreInput, files: Archive, manifest: Manifest, target: Target): Promise<void> {
  const { blobs, dataDir, onProgress } = input;
  await target.prepare(manifest.schema);
  const loaded: Progress = { step: "restoring", done: 0, bytes: 0 };
  await loadTables(files, manifest, target, (count) => {
    loaded.done += count;
    onProgress?.(loaded);
  });
  await target.migrate();
  const copied: Progress = { step: "blobs", done: 0, bytes: 0 };
  for await (const part of readPartList(files, manifest.blobs)) {
    await blobs.put(part.path.slice(blobPath("").length), readPart(files, part));
    copied.done += 1;
    copied.bytes += part.bytes;
    onProgress?.(copied);
  }
  const objects = input.objectsInto?.() ?? objectsIntoFolder(dataDir);
  await restoreObjects(files, manifest, objects, onProgress);
  const folder = new FolderArchive(dataDir);
  for (const part of manifest.files)
    await folder.write(part.path.replace(/^files\//, ""), readPart(files, part));
  await target.finish();
}

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Progress } from "./back-up.ts";
import type { Archive, Part } from "../archive/archive.ts";
import { readPartList } from "../archive/part-list.ts";
import { readPart } from "../archive/parts.ts";
import { openBackup, type BackupAt, type Manifest } from "./manifest.ts";
import { checkObjects, objectParts } from "./copy-objects.ts";
import { loadTables } from "./target.ts";
import { sqliteTarget } from "./target-sqlite.ts";

/** Checks every part of an archive against its digest. Throws an error that names the first damaged part. */
export async function verifyParts(
  backup: BackupAt,
  onProgress?: (progress: Progress) => void,
): Promise<{ files: Archive; manifest: Manifest }> {
  const { files, manifest } = await openBackup(backup);
  const progress: Progress = { step: "reading", done: 0, bytes: 0 };
  const read = async (part: Part): Promise<void> => {
    for await (const chunk of readPart(files, part)) progress.bytes += chunk.length;
    progress.done += 1;
    onProgress?.(progress);
  };
  for (const part of [...manifest.tables, ...manifest.files]) await read(part);
  for await (const part of readPartList(files, manifest.blobs)) await read(part);
  for await (const part of objectParts(files, manifest)) await read(part);
  return { files, manifest };
}

/**
 * Checks an archive: its digests, that its rows can be restored, which it tries in a temporary database, and
 * the databases of objects, with SQLite's own check.
 */
export async function verify(backup: BackupAt, onProgress?: (progress: Progress) => void): Promise<Manifest> {
  const { files, manifest } = await verifyParts(backup, onProgress);
  const aside = await mkdtemp(join(tmpdir(), "selvedge-verify-"));
  try {
    const target = sqliteTarget(join(aside, "selvedge.db"));
    try {
      await target.prepare(manifest.schema);
      const progress: Progress = { step: "restoring", done: 0, bytes: 0 };
      await loadTables(files, manifest, target, (count) => {
        progress.done += count;
        onProgress?.(progress);
      });
      await target.migrate();
    } finally {
      await target.close();
    }
    await checkObjects(files, manifest, aside, onProgress);
  } finally {
    await rm(aside, { recursive: true });
  }
  return manifest;
}

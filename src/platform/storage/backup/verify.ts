import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Progress } from "./back-up.ts";
import { damaged, readManifest, type Manifest, type Part } from "./manifest.ts";
import { readLines, readPart } from "./parts.ts";
import { loadTables } from "./target.ts";
import { sqliteTarget } from "./target-sqlite.ts";

/** Checks every part of an archive against its digest. Throws an error that names the first damaged part. */
export async function verifyParts(
  folder: string,
  onProgress?: (progress: Progress) => void,
): Promise<Manifest> {
  const manifest = await readManifest(folder);
  const progress: Progress = { step: "reading", done: 0, bytes: 0 };
  const read = async (part: Part): Promise<void> => {
    for await (const chunk of readPart(folder, part)) progress.bytes += chunk.length;
    progress.done += 1;
    onProgress?.(progress);
  };
  for (const part of [...manifest.tables, ...manifest.files]) await read(part);
  let count = 0;
  for await (const part of blobParts(folder, manifest)) {
    await read(part);
    count += 1;
  }
  if (count !== manifest.blobs.count)
    throw damaged(manifest.blobs.path, `names ${count} blobs instead of ${manifest.blobs.count}`);
  return manifest;
}

export async function* blobParts(folder: string, { blobs }: Manifest): AsyncGenerator<Part> {
  for await (const line of readLines(folder, blobs)) yield JSON.parse(line) as Part;
}

/** Checks an archive: its digests, and that its rows can be restored, in a temporary database. */
export async function verify(folder: string, onProgress?: (progress: Progress) => void): Promise<Manifest> {
  const manifest = await verifyParts(folder, onProgress);
  const aside = await mkdtemp(join(tmpdir(), "selvedge-verify-"));
  try {
    const target = sqliteTarget(join(aside, "selvedge.db"));
    try {
      await target.prepare(manifest.schema);
      const progress: Progress = { step: "restoring", done: 0, bytes: 0 };
      await loadTables(folder, manifest, target, (count) => {
        progress.done += count;
        onProgress?.(progress);
      });
      await target.finish();
    } finally {
      await target.close();
    }
  } finally {
    await rm(aside, { recursive: true });
  }
  return manifest;
}

import type { Read, Write } from "../../platform/storage/storage.ts";
import type { AssetFile, ManifestEntry } from "./asset.ts";

/** Hashes in one query. Both engines allow more parameters, but more are not faster. */
const hashesPerQuery = 500;

export async function files(read: Read, scope: string, hashes: readonly string[]): Promise<AssetFile[]> {
  const found: AssetFile[] = [];
  for (let at = 0; at < hashes.length; at += hashesPerQuery) {
    const rows = await read
      .selectFrom("asset_files")
      .selectAll()
      .where("scope", "=", scope)
      .where("hash", "in", hashes.slice(at, at + hashesPerQuery))
      .execute();
    for (const row of rows)
      found.push({
        hash: row.hash,
        sizeBytes: row.size_bytes,
        contentType: row.content_type,
        blobKey: row.blob_key,
      });
  }
  return found;
}

/**
 * As `files`, for a caller that relies on them from now on: updates the time of last use of files last used
 * before `staleOn`.
 */
export async function useFiles(
  trx: Write,
  scope: string,
  hashes: readonly string[],
  { now, staleOn }: { now: number; staleOn: number },
): Promise<AssetFile[]> {
  for (let at = 0; at < hashes.length; at += hashesPerQuery)
    await trx
      .updateTable("asset_files")
      .set({ used_on: now })
      .where("scope", "=", scope)
      .where("hash", "in", hashes.slice(at, at + hashesPerQuery))
      .where("used_on", "<", staleOn)
      .execute();
  return files(trx, scope, hashes);
}

/** Adds files that are not stored yet. Returns their hashes. */
export async function addFiles(
  trx: Write,
  scope: string,
  added: readonly AssetFile[],
  usedOn: number,
): Promise<Set<string>> {
  const hashes = new Set<string>();
  for (let at = 0; at < added.length; at += hashesPerQuery) {
    const rows = await trx
      .insertInto("asset_files")
      .values(
        added.slice(at, at + hashesPerQuery).map((file) => ({
          scope,
          hash: file.hash,
          size_bytes: file.sizeBytes,
          content_type: file.contentType,
          blob_key: file.blobKey,
          used_on: usedOn,
        })),
      )
      .onConflict((conflict) => conflict.doNothing())
      .returning("hash")
      .execute();
    for (const { hash } of rows) hashes.add(hash);
  }
  return hashes;
}

export interface AssetManifest {
  id: string;
  scope: string;
  entries: ManifestEntry[];
}

export async function findManifest(read: Read, id: string): Promise<AssetManifest | undefined> {
  const row = await read.selectFrom("asset_manifests").selectAll().where("id", "=", id).executeTakeFirst();
  if (row === undefined) return undefined;
  const entries = JSON.parse(row.entries) as [string, string, number][];
  return {
    id,
    scope: row.scope,
    entries: entries.map(([path, hash, sizeBytes]) => ({ path, hash, sizeBytes })),
  };
}

/** Adds a manifest, or updates the time of last use of an existing one: the id is derived from the content. */
export async function putManifest(trx: Write, manifest: AssetManifest, usedOn: number): Promise<void> {
  await trx
    .insertInto("asset_manifests")
    .values({
      id: manifest.id,
      scope: manifest.scope,
      entries: JSON.stringify(manifest.entries.map(({ path, hash, sizeBytes }) => [path, hash, sizeBytes])),
      used_on: usedOn,
    })
    .onConflict((conflict) => conflict.column("id").doUpdateSet({ used_on: usedOn }))
    .execute();
}

/** Returns false if the manifest is gone. */
export async function useManifest(trx: Write, id: string, usedOn: number): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable("asset_manifests")
    .set({ used_on: usedOn })
    .where("id", "=", id)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

import type { ExpressionBuilder, ExpressionWrapper, SqlBool } from "kysely";
import type { Database } from "../../platform/storage/schema.ts";
import type { Read, Write } from "../../platform/storage/storage.ts";
import { findManifest } from "./store.ts";

type Manifests = ExpressionBuilder<Database, "asset_manifests">;
const isOfNoVersion = (eb: Manifests): ExpressionWrapper<Database, "asset_manifests", SqlBool> =>
  eb.not(
    eb.exists(
      eb
        .selectFrom("script_versions")
        .select("script_versions.id")
        .whereRef("script_versions.manifest_id", "=", "asset_manifests.id"),
    ),
  );

/** Manifests that no version of a script uses, and no session has used since a time. */
export async function unusedManifests(
  read: Read,
  usedBefore: number,
  limit: number,
): Promise<{ id: string; scope: string }[]> {
  return read
    .selectFrom("asset_manifests")
    .select(["id", "scope"])
    .where("used_on", "<", usedBefore)
    .where(isOfNoVersion)
    .orderBy("used_on")
    .limit(limit)
    .execute();
}

/** The hashes of a manifest that no other manifest of its scope has. */
export async function hashesOfNoOther(
  read: Read,
  { id, scope }: { id: string; scope: string },
): Promise<string[]> {
  const hashes = new Set((await findManifest(read, id))?.entries.map(({ hash }) => hash));
  const others = await read
    .selectFrom("asset_manifests")
    .select("id")
    .where("scope", "=", scope)
    .where("id", "!=", id)
    .execute();
  // Loaded one at a time: all together may exceed the memory.
  for (const other of others) {
    if (hashes.size === 0) break;
    for (const { hash } of (await findManifest(read, other.id))?.entries ?? []) hashes.delete(hash);
  }
  return [...hashes];
}

/** Returns false if the manifest is used again or gone. */
export async function removeUnusedManifest(trx: Write, id: string, usedBefore: number): Promise<boolean> {
  const { numDeletedRows } = await trx
    .deleteFrom("asset_manifests")
    .where("id", "=", id)
    .where("used_on", "<", usedBefore)
    .where(isOfNoVersion)
    .executeTakeFirst();
  return numDeletedRows === 1n;
}

/**
 * Removes files that no session has used since a time, and skips files that a session is locking. Returns
 * their blobs.
 */
export async function removeUnusedFiles(
  trx: Write,
  engine: "sqlite" | "postgres",
  { scope, hashes, usedBefore }: { scope: string; hashes: readonly string[]; usedBefore: number },
): Promise<string[]> {
  if (hashes.length === 0) return [];
  const rows = await trx
    .deleteFrom("asset_files")
    .where("scope", "=", scope)
    .where("hash", "in", (eb) => {
      const unused = eb
        .selectFrom("asset_files")
        .select("hash")
        .where("scope", "=", scope)
        .where("hash", "in", hashes)
        .where("used_on", "<", usedBefore);
      return engine === "postgres" ? unused.forUpdate().skipLocked() : unused;
    })
    .returning("blob_key")
    .execute();
  return rows.map(({ blob_key }) => blob_key);
}

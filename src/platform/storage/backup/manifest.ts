import { schemaVersions, tooNew } from "../migrations/migrate.ts";
import type { Archive, ArchiveStore, Part } from "../archive/archive.ts";
import type { PartList } from "../archive/part-list.ts";
import { BackupError } from "../archive/errors.ts";

/** The content of manifest.json. */
export interface Manifest {
  format: 1;
  /** Version of the program that wrote the archive. */
  written_by: string;
  engine: "sqlite" | "postgres";
  /** Schema version of the tables. */
  schema: string;
  /** The point in time of the tables, ISO 8601. */
  created_on: string;
  tables: (Part & { name: string; rows: number; highest_number?: number })[];
  /** The list of the blobs. */
  blobs: PartList;
  /**
   * The list of files of Durable Objects and D1 databases is a part; each of its lines is the part of one database.
   * Absent in archives of older programs. `with_gap`: databases whose last changes were missing in their log.
   */
  objects?: Part & { lines: number; count: number; total_bytes: number; with_gap?: string[] };
  /** Files of the data folder. */
  files: Part[];
  /** Rows that were changed after the point in time, because their blob was deleted before it was copied. */
  amended: number;
  /** Blobs that rows name and that did not exist. */
  missing_blobs: string[];
  /** Parts that are not in the archive. */
  left_out: string[];
}

export const manifestText = (manifest: Manifest): string => `${JSON.stringify(manifest, null, 2)}\n`;

/** A backup by its name in a store. */
export interface BackupAt {
  store: ArchiveStore;
  name: string;
}

/** Opens a backup that this program can restore. */
export async function openBackup({ store, name }: BackupAt): Promise<{ files: Archive; manifest: Manifest }> {
  const { files, manifest: text } = await store.open(name);
  const manifest = JSON.parse(text) as Manifest;
  const { schema, written_by: writtenBy } = manifest;
  if (manifest.format !== 1 || !schemaVersions.includes(schema))
    throw new BackupError(
      tooNew(`The backup ${files.shown}`, schema, { writtenBy, oldestProgram: writtenBy }),
    );
  return { files, manifest };
}

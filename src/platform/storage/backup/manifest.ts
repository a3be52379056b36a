import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { schemaVersions, tooNew } from "../migrations/migrate.ts";
import { BackupError } from "./errors.ts";

/** A file of the archive, by its path there. */
export interface Part {
  path: string;
  bytes: number;
  sha256: string;
}

/** manifest.json: what the archive holds. */
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
  /** The list of blobs is a part; each of its lines is the part of one blob. */
  blobs: Part & { count: number; total_bytes: number };
  /** Files of the data folder. */
  files: Part[];
  /** Rows that were changed after the point in time, because their blob was deleted before it was copied. */
  amended: number;
  /** Blobs that rows name and that did not exist. */
  missing_blobs: string[];
  /** What is not in the archive. */
  left_out: string[];
}

const manifestFile = "manifest.json";
const digestFile = "manifest.sha256";
const digestOf = (text: string): string => createHash("sha256").update(text).digest("hex");

/** Writes the manifest and its digest, which `sha256sum -c manifest.sha256` can check too. */
export async function writeManifest(folder: string, manifest: Manifest): Promise<void> {
  const text = `${JSON.stringify(manifest, null, 2)}\n`;
  const options = { mode: 0o600, flush: true };
  await writeFile(join(folder, manifestFile), text, options);
  await writeFile(join(folder, digestFile), `${digestOf(text)}  ${manifestFile}\n`, options);
}

/** Reads the manifest of an archive that this program can restore. */
export async function readManifest(folder: string): Promise<Manifest> {
  const [text, digest] = await Promise.all(
    [manifestFile, digestFile].map(async (name) =>
      readFile(join(folder, name), "utf8").catch(() => undefined),
    ),
  );
  if (text === undefined || digest === undefined) {
    const absent = text === undefined ? manifestFile : digestFile;
    throw new BackupError(`Expected a backup at ${folder} but it has no ${absent}.`);
  }
  if (digest !== `${digestOf(text)}  ${manifestFile}\n`) throw damaged(manifestFile);
  const manifest = JSON.parse(text) as Manifest;
  const { schema, written_by: writtenBy } = manifest;
  if (manifest.format !== 1 || !schemaVersions.includes(schema))
    throw new BackupError(tooNew(`The backup ${folder}`, schema, { writtenBy, oldestProgram: writtenBy }));
  return manifest;
}

/** The error about a part that is not as it was written. */
export const damaged = (part: string, how = "does not match its digest"): BackupError =>
  new BackupError(`The backup is damaged: ${part} ${how}. Use another backup.`);

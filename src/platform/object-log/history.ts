import {
  existsSync,
  lchownSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { BackupError } from "../storage/archive/errors.ts";
import type { Archive } from "../storage/archive/archive.ts";
import { syncPath } from "../storage/durability.ts";
import { isDatabase, isFacets, type ObjectFile } from "../storage/live-files/object-files.ts";
import type { Catalog } from "./catalog.ts";
import { checkDatabase } from "./integrity/check-database.ts";
import { writeState } from "./states.ts";
import { maxStamp, type Stamp } from "./stamps.ts";

interface Log {
  catalog: Catalog;
  files: Archive;
}

/** One file of an object that is being replaced. It is noted on disk, so that the next start finishes after a kill. */
export interface Replacement extends ObjectFile {
  /** Whether there is a new file beside it; otherwise the file is deleted. */
  isNew: boolean;
}

const newSuffix = ".restoring";

/**
 * Writes the state of an object at a moment to new files beside its own, which stay unchanged. Returns
 * undefined if the object did not exist then. `facets` leaves out the host's database, because the host has
 * it open and never writes it.
 */
export async function prepareObject(
  log: Log,
  folder: string,
  { namespace, id }: { namespace: string; id: string },
  at: Stamp,
  part: "all" | "facets" = "all",
): Promise<Replacement[] | undefined> {
  const prepared: string[] = [];
  try {
    const replacements: Replacement[] = [];
    for (const file of log.catalog.files(namespace, `${id}.`)) {
      if (!isDatabase(file.name)) continue; // facets keep their numbers
      if (part === "facets" && file.name === `${id}.sqlite`) continue;
      const to = join(folder, namespace, file.name + newSuffix);
      prepared.push(to);
      const isNew = await writeState(log, file, at, { to });
      if (isNew) {
        await checkDatabase(to, file.name);
        await syncPath(to);
      }
      replacements.push({ ...file, isNew });
    }
    return replacements.some(({ isNew }) => isNew) ? replacements : undefined;
  } catch (error) {
    for (const path of prepared) rmSync(path, { force: true });
    throw error;
  }
}

/**
 * Replaces files with prepared ones. No process may have them open. After a kill, the next start finishes
 * this with `finishReplacements`.
 */
export async function replaceFiles(
  folder: string,
  notes: string,
  replacements: readonly Replacement[],
): Promise<void> {
  await mkdir(notes, { recursive: true, mode: 0o700 });
  const [first] = replacements;
  const note = join(notes, `${first!.namespace}-${first!.name}.json`);
  writeFileSync(`${note}.partial`, JSON.stringify(replacements), { mode: 0o600, flush: true });
  renameSync(`${note}.partial`, note);
  await syncPath(notes);
  replace(folder, replacements);
  await syncPath(join(folder, first!.namespace));
  rmSync(note);
}

/** Finishes replacements that a kill interrupted. Returns their files. */
export function finishReplacements(folder: string, notes: string): ObjectFile[] {
  if (!existsSync(notes)) return [];
  const done: ObjectFile[] = [];
  for (const name of readdirSync(notes)) {
    if (name.endsWith(".json")) {
      const replacements = JSON.parse(readFileSync(join(notes, name), "utf8")) as Replacement[];
      replace(folder, replacements);
      done.push(...replacements);
    }
    rmSync(join(notes, name));
  }
  return done;
}

function replace(folder: string, replacements: readonly Replacement[]): void {
  for (const { namespace, name, isNew } of replacements) {
    const path = join(folder, namespace, name);
    const isPlaced = isNew && !existsSync(path + newSuffix);
    if (isPlaced) continue; // the killed process has replaced this file
    for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix, { force: true });
    if (!isNew) {
      rmSync(path, { force: true });
      continue;
    }
    const { uid, gid } = statSync(dirname(path));
    if (process.getuid?.() === 0) lchownSync(path + newSuffix, uid, gid);
    renameSync(path + newSuffix, path);
  }
}

/** The moment of an object's first base in the log; undefined without bases. */
export function earliestOf({ catalog }: Log, namespace: string, id: string): Stamp | undefined {
  const bases = catalog
    .files(namespace, `${id}.`)
    .filter(({ name }) => isDatabase(name))
    .flatMap((file) => catalog.firstBaseOf(file) ?? []);
  return bases.length === 0 ? undefined : bases.reduce((a, b) => (a < b ? a : b));
}

/** The result of a restore of all objects. */
export interface RestoredObjects {
  databases: number;
  /** Names of databases whose last changes before the moment are missing in the log. */
  withGap: string[];
}

/** Writes the states of all objects at a moment into an empty folder. */
export async function writeObjects(log: Log, folder: string, at: Stamp): Promise<RestoredObjects> {
  let databases = 0;
  const withGap: string[] = [];
  for (const file of log.catalog.files()) {
    const path = join(folder, file.namespace, file.name);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const moment = isFacets(file.name) ? maxStamp : at;
    if (!(await writeState(log, file, moment, { to: path, takesEarlier: () => withGap.push(file.name) })))
      continue;
    if (isFacets(file.name)) continue;
    await checkDatabase(path, file.name);
    await syncPath(path);
    databases += 1;
  }
  if (databases === 0)
    throw new BackupError(`Expected the log of objects at ${log.files.shown}, but there is none.`);
  return { databases, withGap };
}

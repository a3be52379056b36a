import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createReadStream } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Archive, Part } from "../archive/archive.ts";
import { damaged } from "../archive/errors.ts";
import { FolderArchive } from "../archive/folder.ts";
import { compressed, readCompressed, readLines, writeLines, writePart } from "../archive/parts.ts";
import { copyDatabase } from "../live-files/copy-database.ts";
import {
  isDatabase,
  objectFiles,
  objectsFolderOf,
  readFlags,
  type ObjectFile,
} from "../live-files/object-files.ts";
import type { Progress } from "./back-up.ts";
import type { Manifest } from "./manifest.ts";
import { paced, type Pace } from "./pace.ts";

/** The part of one database of an object, compressed, in a line of the list. */
interface ObjectPart extends Part {
  namespace: string;
  name: string;
}

/** A small file of an object, in a line of the list. */
interface ObjectContent {
  namespace: string;
  name: string;
  /** Base64. */
  content: string;
}

/** An empty database of SQLite has one page of this size; one with content has more. */
const emptyBytes = 4096;

const pieceBytes = 32 * 1024;

/** The files of all objects. */
export interface ObjectFilesToCopy {
  files(): AsyncIterable<ObjectFile> | Iterable<ObjectFile>;
  /** Copies a database in one state. Returns false if there is none, or if it has fewer bytes. */
  copy(file: ObjectFile, to: string, bytesMin: number): Promise<boolean>;
  /** The content of a small file. */
  contentOf(file: ObjectFile): Promise<Buffer>;
  /** Names of databases whose last changes are missing. */
  readonly withGap: readonly string[];
}

/** The files of objects that are restored. */
export interface RestoredObjectFiles {
  write(file: ObjectFile, content: AsyncIterable<Uint8Array>): Promise<void>;
  /** Called after the last one. */
  complete(): Promise<void>;
}

/** The objects of a data folder. Each copy is consistent, although its database may be written meanwhile. */
export function objectsOfFolder(dataDir: string): ObjectFilesToCopy {
  const folder = objectsFolderOf(dataDir);
  const pathOf = ({ namespace, name }: ObjectFile): string => join(folder, namespace, name);
  return {
    files: () => objectFiles(folder),
    copy: async (file, to, bytesMin) => copyDatabase(pathOf(file), to, bytesMin),
    contentOf: async (file) => readFile(pathOf(file), { flag: readFlags }).catch(() => Buffer.alloc(0)),
    withGap: [],
  };
}

/** Writes objects into a data folder. */
export function objectsIntoFolder(dataDir: string): RestoredObjectFiles {
  const folder = new FolderArchive(objectsFolderOf(dataDir));
  return {
    write: async ({ namespace, name }, content) => folder.write(`${namespace}/${name}`, content),
    complete: async () => {},
  };
}

/** Copies the files of all objects. */
export async function copyObjects(
  source: ObjectFilesToCopy,
  files: Archive,
  pace: Pace,
  onProgress?: (progress: Progress) => void,
): Promise<NonNullable<Manifest["objects"]>> {
  const progress: Progress = { step: "objects", done: 0, bytes: 0 };
  const aside = await mkdtemp(join(tmpdir(), "selvedge-objects-"));
  const lines = async function* (): AsyncGenerator<string> {
    for await (const file of source.files()) {
      const { namespace, name } = file;
      const part = isDatabase(name)
        ? await copyOne({ source, files, pace }, file, join(aside, "copy"))
        : { content: (await source.contentOf(file)).toString("base64") };
      if (part === undefined) continue;
      if ("path" in part) {
        progress.done += 1;
        progress.bytes += part.bytes;
        onProgress?.(progress);
      }
      yield `${JSON.stringify({ namespace, name, ...part })}\n`;
    }
  };
  try {
    const { rows, ...part } = await writeLines(files, "objects.ndjson.zst", lines());
    const gaps = source.withGap.length > 0 && { with_gap: [...source.withGap] };
    return { ...part, lines: rows, count: progress.done, total_bytes: progress.bytes, ...gaps };
  } finally {
    await rm(aside, { recursive: true });
  }
}

async function copyOne(
  { source, files, pace }: { source: ObjectFilesToCopy; files: Archive; pace: Pace },
  file: ObjectFile,
  copy: string,
): Promise<Part | undefined> {
  if (!(await source.copy(file, copy, emptyBytes + 1))) return undefined;
  const path = `objects/${file.namespace}/${file.name}.zst`;
  return writePart(
    files,
    path,
    compressed(paced(createReadStream(copy, { highWaterMark: pieceBytes }), pace)),
  );
}

async function* linesOf(files: Archive, { objects }: Manifest): AsyncGenerator<ObjectPart | ObjectContent> {
  if (objects === undefined) return; // written before objects were in backups
  let count = 0;
  for await (const line of readLines(files, objects)) {
    yield JSON.parse(line) as ObjectPart | ObjectContent;
    count += 1;
  }
  if (count !== objects.lines)
    throw damaged(objects.path, `names ${count} files instead of ${objects.lines}`);
}

/** The parts of all databases of objects. */
export async function* objectParts(files: Archive, manifest: Manifest): AsyncGenerator<Part> {
  for await (const line of linesOf(files, manifest)) if ("path" in line) yield line;
}

/** Writes the files of all objects. */
export async function restoreObjects(
  files: Archive,
  manifest: Manifest,
  target: RestoredObjectFiles,
  onProgress?: (progress: Progress) => void,
): Promise<void> {
  const progress: Progress = { step: "objects", done: 0, bytes: 0 };
  for await (const line of linesOf(files, manifest)) {
    const content = "path" in line ? readCompressed(files, line) : once(line.content);
    const { namespace, name } = line;
    await target.write({ namespace, name }, content);
    if (!("path" in line)) continue;
    progress.done += 1;
    progress.bytes += line.bytes;
    onProgress?.(progress);
  }
  await target.complete();
}

async function* once(base64: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(base64, "base64");
}

/** Checks all databases of objects. Throws a BackupError that names a damaged one. `aside` is an empty folder. */
export async function checkObjects(
  files: Archive,
  manifest: Manifest,
  aside: string,
  onProgress?: (progress: Progress) => void,
): Promise<void> {
  const folder = new FolderArchive(aside);
  const progress: Progress = { step: "objects", done: 0, bytes: 0 };
  for await (const part of objectParts(files, manifest)) {
    await folder.write("object.sqlite", readCompressed(files, part));
    using database = new DatabaseSync(join(aside, "object.sqlite"));
    const [found] = database.prepare("pragma quick_check").all();
    const result = String(Object.values(found ?? {})[0]);
    if (result !== "ok") throw damaged(part.path, `is not whole: ${result}`);
    progress.done += 1;
    progress.bytes += part.bytes;
    onProgress?.(progress);
  }
}

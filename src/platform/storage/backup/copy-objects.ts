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
import { isDatabase, objectFiles, objectsFolderOf, readFlags } from "../live-files/object-files.ts";
import type { Progress } from "./back-up.ts";
import type { Manifest } from "./manifest.ts";

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

/** Copies the databases of all objects. Each copy is consistent, although its database may be written meanwhile. */
export async function copyObjects(
  dataDir: string,
  files: Archive,
  onProgress?: (progress: Progress) => void,
): Promise<NonNullable<Manifest["objects"]>> {
  const progress: Progress = { step: "objects", done: 0, bytes: 0 };
  const folder = objectsFolderOf(dataDir);
  const aside = await mkdtemp(join(tmpdir(), "selvedge-objects-"));
  const lines = async function* (): AsyncGenerator<string> {
    for await (const { namespace, name } of objectFiles(folder)) {
      const path = join(folder, namespace, name);
      const part = isDatabase(name)
        ? await copyOne(path, join(aside, "copy"), `objects/${namespace}/${name}.zst`, files)
        : {
            content: (await readFile(path, { flag: readFlags }).catch(() => Buffer.alloc(0))).toString(
              "base64",
            ),
          };
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
    return { ...part, lines: rows, count: progress.done, total_bytes: progress.bytes };
  } finally {
    await rm(aside, { recursive: true });
  }
}

async function copyOne(
  path: string,
  copy: string,
  partPath: string,
  files: Archive,
): Promise<Part | undefined> {
  if (!(await copyDatabase(path, copy, emptyBytes + 1))) return undefined;
  return writePart(files, partPath, compressed(createReadStream(copy)));
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

/** Writes the databases of all objects into the data folder. */
export async function restoreObjects(
  files: Archive,
  manifest: Manifest,
  dataDir: string,
  onProgress?: (progress: Progress) => void,
): Promise<void> {
  const folder = new FolderArchive(objectsFolderOf(dataDir));
  const progress: Progress = { step: "objects", done: 0, bytes: 0 };
  for await (const line of linesOf(files, manifest)) {
    const content = "path" in line ? readCompressed(files, line) : [Buffer.from(line.content, "base64")];
    await folder.write(`${line.namespace}/${line.name}`, content as AsyncIterable<Uint8Array>);
    if (!("path" in line)) continue;
    progress.done += 1;
    progress.bytes += line.bytes;
    onProgress?.(progress);
  }
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

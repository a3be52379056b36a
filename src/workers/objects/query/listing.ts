import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** The first facet of a host: the object itself. */
const suffix = ".1.sqlite";
/** SQLite creates a database with one page; an object that has written has more. */
const emptyBytes = 4096;

/** The name of an object's database in the folder of its namespace. */
export const objectFile = (id: string): string => `${id}${suffix}`;

/** Whether an object has stored data. */
export const hasObject = async (folder: string, namespace: string, id: string): Promise<boolean> =>
  (await storedBytes(join(folder, namespace, objectFile(id)))) > 0;

export interface ListedObject {
  id: string;
  /** Bytes of its database, with its log. */
  storedBytes: number;
}

/** A namespace's objects that have stored data, in the order of their ids, after `cursor`. */
export async function listObjects(
  folder: string,
  namespace: string,
  { limit, cursor = "" }: { limit: number; cursor?: string | undefined },
): Promise<{ objects: ListedObject[]; next: string | undefined }> {
  const path = join(folder, namespace);
  const names = await readdir(path).catch(() => []);
  const all = names
    .filter((name) => name.endsWith(suffix))
    .map((name) => name.slice(0, -suffix.length))
    .filter((id) => id > cursor)
    .sort();
  const objects: ListedObject[] = [];
  for (const id of all) {
    const bytes = await storedBytes(join(path, objectFile(id)));
    if (bytes === 0) continue;
    if (objects.length === limit) return { objects, next: objects.at(-1)!.id };
    objects.push({ id, storedBytes: bytes });
  }
  return { objects, next: undefined };
}

/** Size of a database with its log in bytes; 0 if the object has stored nothing. */
async function storedBytes(file: string): Promise<number> {
  // Pages that were not yet moved into the database are in its log.
  const [database, log] = await Promise.all([bytesOf(file), bytesOf(`${file}-wal`)]);
  return database > emptyBytes || log > emptyBytes ? database + log : 0;
}

const bytesOf = async (file: string): Promise<number> => (await stat(file).catch(() => undefined))?.size ?? 0;

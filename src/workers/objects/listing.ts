import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** The first facet of a host: the object itself. */
const suffix = ".1.sqlite";
/** SQLite creates a database with one page; an object that has written has more. */
const emptyBytes = 4096;

/** The ids of a namespace's objects that have stored data, in the order of their ids, after `cursor`. */
export async function listObjects(
  folder: string,
  namespace: string,
  { limit, cursor = "" }: { limit: number; cursor?: string | undefined },
): Promise<{ ids: string[]; next: string | undefined }> {
  const path = join(folder, namespace);
  const names = await readdir(path).catch(() => []);
  const all = names
    .filter((name) => name.endsWith(suffix))
    .map((name) => name.slice(0, -suffix.length))
    .filter((id) => id > cursor)
    .sort();
  const ids: string[] = [];
  for (const id of all) {
    if (!(await hasData(join(path, `${id}${suffix}`)))) continue;
    if (ids.length === limit) return { ids, next: ids.at(-1) };
    ids.push(id);
  }
  return { ids, next: undefined };
}

async function hasData(file: string): Promise<boolean> {
  // Pages that were not yet moved into the database are in its log.
  const [database, log] = await Promise.all([bytesOf(file), bytesOf(`${file}-wal`)]);
  return database > emptyBytes || log > emptyBytes;
}

const bytesOf = async (file: string): Promise<number> => (await stat(file).catch(() => undefined))?.size ?? 0;

import { constants, lstatSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";

/** The folder of the data folder that holds the databases of Durable Objects and of D1, a folder for each namespace. */
export const objectsFolderOf = (dataDir: string): string => join(dataDir, "objects");

const namespacePattern = /^[0-9a-f]{32}$/;
/**
 * workerd's databases: of an object, and of its facets. `metadata.sqlite` of each namespace is none of them: it is for
 * alarms of workerd, which objects here do not have.
 */
const databasePattern = /^[0-9a-f]{64}(?:\.\d{1,5})?\.sqlite$/;
/** The numbers of an object's facets. workerd appends to it. */
const facetsPattern = /^[0-9a-f]{64}\.facets$/;

export const isNamespace = (name: string): boolean => namespacePattern.test(name);
/** Whether a file of a namespace is the database of an object or of a facet. */
export const isDatabase = (name: string): boolean => databasePattern.test(name);
export const isFacets = (name: string): boolean => facetsPattern.test(name);

/** A file of the folder of objects. */
export interface ObjectFile {
  namespace: string;
  name: string;
}

/**
 * Flags to read a file of a namespace's folder. A cell that a script controls may have put a link to any file of this machine
 * there, or a pipe without a writer.
 */
export const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** The size of a file of such a folder; 0 for anything but a file. */
export function bytesOf(path: string): number {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found?.isFile() === true ? found.size : 0;
}

const inOrder = (a: string, b: string): number => (a < b ? -1 : 1);

/** The files of all namespaces that hold data: databases and indexes of facets. */
export async function* objectFiles(folder: string): AsyncGenerator<ObjectFile> {
  const namespaces = await readdir(folder).catch(() => []);
  for (const namespace of namespaces.filter(isNamespace).toSorted(inOrder)) {
    const names = await readdir(join(folder, namespace)).catch(() => []);
    for (const name of names.toSorted(inOrder))
      if (isDatabase(name) || isFacets(name)) yield { namespace, name };
  }
}

import { constants, lstatSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";

/** The folder with the databases of Durable Objects and of D1, in a folder for each namespace. */
export const objectsFolderOf = (dataDir: string): string => join(dataDir, "objects");

/** In the data folder of a node that runs objects together with others: the shards whose files it has. */
export const knownShardsFile = "object-shards.json";

const namespacePattern = /^[0-9a-f]{32}$/;
/**
 * The databases that workerd creates for an object and its facets. Does not match `metadata.sqlite` of each
 * namespace, which is for workerd's own alarms; objects here do not use them.
 */
const databasePattern = /^[0-9a-f]{64}(?:\.\d{1,5})?\.sqlite$/;
/** The file with the numbers of an object's facets, to which workerd appends. */
const facetsPattern = /^[0-9a-f]{64}\.facets$/;

export const isNamespace = (name: string): boolean => namespacePattern.test(name);
/** Whether a file of a namespace is the database of an object or of a facet. */
export const isDatabase = (name: string): boolean => databasePattern.test(name);
export const isFacets = (name: string): boolean => facetsPattern.test(name);

/** A file in the folder of objects, by namespace and name. */
export interface ObjectFile {
  namespace: string;
  name: string;
}

/**
 * Flags to open a file in a namespace's folder for reading. A cell that a script controls may have put a link
 * to any file of this machine there, or a pipe without a writer.
 */
export const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** The size of a regular file; 0 for anything else. */
export function fileBytes(path: string): number {
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

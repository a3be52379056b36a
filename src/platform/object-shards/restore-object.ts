import { lchownSync, lstatSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Catalog } from "../object-log/catalog.ts";
import { maxStamp } from "../object-log/stamps.ts";
import { writeState } from "../object-log/states.ts";
import type { Archive } from "../storage/archive/archive.ts";
import { syncPath } from "../storage/durability.ts";

const newSuffix = ".restoring";

/** The shard of an object was given to another node while the object's files were brought here. */
export class ShardGiven extends Error {
  constructor() {
    super("The shard of the object was given to another node");
  }
}

/**
 * Writes the files of an object from the log, unless they are there. No process has them open. `onGap` is called if the log
 * lacks the last changes. Rejects with ShardGiven, and places nothing, unless `isCurrent` in the end. The database of the host comes last: where it is, the others are.
 */
export async function restoreObject(
  log: { catalog: Catalog; files: Archive; folder: string },
  { namespace, id }: { namespace: string; id: string },
  { onGap, isCurrent }: { onGap: () => void; isCurrent: () => boolean },
): Promise<void> {
  const folder = join(log.folder, namespace);
  const host = `${id}.sqlite`;
  if (lstatSync(join(folder, host), { throwIfNoEntry: false }) !== undefined) return;
  const names: string[] = [];
  for (const file of log.catalog.files(namespace, `${id}.`)) {
    const to = join(folder, file.name + newSuffix);
    if (!(await writeState(log, file, maxStamp, { to, takesEarlier: onGap }))) continue;
    await syncPath(to);
    names.push(file.name);
  }
  if (!isCurrent()) throw new ShardGiven();
  const { uid, gid } = statSync(folder);
  for (const name of names.toSorted((a, b) => Number(a === host) - Number(b === host))) {
    const path = join(folder, name);
    if (process.getuid?.() === 0) lchownSync(path + newSuffix, uid, gid);
    renameSync(path + newSuffix, path);
  }
  if (names.length > 0) await syncPath(folder);
}

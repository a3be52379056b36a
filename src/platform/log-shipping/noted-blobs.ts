import { join } from "node:path";
import type { Blobs } from "../storage/blobs.ts";
import type { Storage } from "../storage/storage.ts";
import { LinkedBlobs } from "./linked-blobs.ts";
import { spoolFolder } from "./spool.ts";

/** Blobs whose content is shipped with the log. */
export function shippedBlobs(blobs: Blobs, dataDir: string, storage: Pick<Storage, "blobStored">): Blobs {
  const links = new LinkedBlobs(join(dataDir, "blobs"), spoolFolder(dataDir));
  return notedBlobs(blobs, async (key) => {
    await links.add(key);
    storage.blobStored(key);
  });
}

/** Calls `stored` after the content of a key is stored, and before `put` resolves and a row can name the key. */
const notedBlobs = (blobs: Blobs, stored: (key: string) => Promise<void>): Blobs => ({
  async put(key, content) {
    const written = await blobs.put(key, content);
    await stored(key);
    return written;
  },
  get: (key, range) => blobs.get(key, range),
  head: (key) => blobs.head(key),
  delete: (key) => blobs.delete(key),
  file: (key) => blobs.file(key),
  list: (prefix) => blobs.list(prefix),
  folders: (prefix) => blobs.folders(prefix),
  deleteFolder: (prefix) => blobs.deleteFolder(prefix),
  removeUnnamed: (prefix, writtenBefore, named) => blobs.removeUnnamed(prefix, writtenBefore, named),
  removeAbandoned: (untouchedSince) => blobs.removeAbandoned(untouchedSince),
  check: () => blobs.check(),
});

import { LRUCache } from "lru-cache";

/** Larger results are not kept in memory. */
export const memoryObjectBytesMax = 256 * 1024;
const entryBytes = 256;

/** Small results in memory, limited in bytes. The results of one image are dropped without a search of the others. */
export class ResultMemory {
  readonly #entries: LRUCache<string, Buffer>;
  /** The names of entries, by the folder of the image. */
  readonly #names = new Map<string, Set<string>>();

  constructor(bytesMax: number) {
    this.#entries = new LRUCache({
      maxSize: bytesMax,
      maxEntrySize: Math.min(memoryObjectBytesMax + entryBytes, bytesMax),
      sizeCalculation: (bytes) => bytes.length + entryBytes,
      dispose: (_bytes, name, reason) => {
        if (reason !== "set") this.#unlist(name);
      },
    });
  }

  get(name: string): Buffer | undefined {
    return this.#entries.get(name);
  }

  /** Keeps a result, unless it is too large. */
  set(name: string, bytes: Buffer): void {
    this.#entries.set(name, bytes);
    if (!this.#entries.has(name)) return;
    const folder = folderOf(name);
    let names = this.#names.get(folder);
    if (names === undefined) this.#names.set(folder, (names = new Set()));
    names.add(name);
  }

  /** Drops the results of an image. */
  forget(folder: string): void {
    for (const name of [...(this.#names.get(folder) ?? [])]) this.#entries.delete(name);
  }

  #unlist(name: string): void {
    const folder = folderOf(name);
    const names = this.#names.get(folder);
    names?.delete(name);
    if (names?.size === 0) this.#names.delete(folder);
  }
}

const folderOf = (name: string): string => name.slice(0, name.indexOf("/"));

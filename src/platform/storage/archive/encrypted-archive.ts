import type { Archive, ArchivedFile, ListedFile } from "./archive.ts";
import { damaged } from "./errors.ts";
import { EncryptedNames } from "./encrypted-names.ts";
import { decrypted, decryptedBytes, encrypted } from "./part-cipher.ts";

/** Encrypts the content and names of all files of an archive. Their number, sizes and times stay visible. */
export class EncryptedArchive implements Archive {
  readonly shown: string;
  readonly #files: Archive;
  readonly #key: Uint8Array;
  readonly #names: EncryptedNames;
  /** "" or a text that ends in a slash. */
  readonly #root: string;

  /** `key` has 32 bytes. All paths begin with `root`, which is not encrypted: "" or a text that ends in a slash. */
  constructor(files: Archive, key: Uint8Array, root = "") {
    this.shown = files.shown;
    this.#files = files;
    this.#key = key;
    this.#names = new EncryptedNames(key);
    this.#root = root;
  }

  async write(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
    await this.#files.write(this.#encrypt(path), encrypted(this.#key, path, content));
  }

  async read(path: string): Promise<ArchivedFile | undefined> {
    const found = await this.#files.read(this.#encrypt(path));
    if (found === undefined) return undefined;
    const sizeBytes = decryptedBytes(found.sizeBytes);
    if (sizeBytes >= 0) return { sizeBytes, stream: decrypted(this.#key, path, found.stream) };
    for await (const _ of found.stream) break; // closes the stream
    throw damaged(path, "is cut off");
  }

  async remove(path: string): Promise<void> {
    await this.#files.remove(this.#encrypt(path));
  }

  /** Files with other names are not part of the archive. */
  async *list(prefix: string): AsyncGenerator<ListedFile> {
    for await (const { path: listed, sizeBytes, ageMs } of this.#files.list(this.#encrypt(prefix))) {
      const path = this.#decrypt(listed);
      if (path !== undefined) yield { path, sizeBytes: decryptedBytes(sizeBytes), ageMs };
    }
  }

  async folders(prefix: string): Promise<string[]> {
    const parent = this.#encrypt(prefix);
    const names = await this.#files.folders(parent);
    return names.flatMap((name) => this.#decrypt(parent + name)?.slice(prefix.length) ?? []);
  }

  #encrypt(path: string): string {
    if (!path.startsWith(this.#root)) throw new Error(`Expected a path below ${this.#root}`);
    return this.#root + this.#names.encrypt(path.slice(this.#root.length));
  }

  #decrypt(path: string): string | undefined {
    const plain = this.#names.decrypt(path.slice(this.#root.length));
    return plain === undefined ? undefined : this.#root + plain;
  }
}

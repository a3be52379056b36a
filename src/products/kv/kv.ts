import type { Readable } from "node:stream";
import { orphanAgeMs, type Blobs } from "../../platform/storage/blobs.ts";
import { writeNaming } from "../../platform/storage/blobs/write-with-content.ts";
import { isBlobsUnavailable } from "../../platform/storage/faults.ts";
import { isForeignKeyViolation, isUniqueViolation, onOneNode } from "../../platform/storage/dialects.ts";
import type { Storage, Write } from "../../platform/storage/storage.ts";
import { newId, newUuid } from "../../platform/util/ids.ts";
import { kvErrors } from "./errors.ts";
import { kvLimits } from "./limits.ts";
import * as store from "./store.ts";
import { clock } from "../../platform/timers/clock.ts";
import { Slices } from "../../platform/timers/slices.ts";

export interface KvNamespace {
  id: string;
  accountId: string;
  title: string;
  createdOn: number;
}

export interface KvEntry {
  content: Uint8Array | Readable;
  sizeBytes: number;
  /** Any JSON value; undefined when the entry has none. */
  metadata: unknown;
  /** Seconds since 1970. */
  expiration: number | undefined;
}

export interface KvText extends Pick<KvEntry, "metadata" | "expiration"> {
  text: string;
}

export interface KvPut {
  metadata?: unknown;
  /** Seconds since 1970. */
  expiration?: number | undefined;
  expirationTtl?: number | undefined;
}

export interface KvKey {
  name: string;
  expiration?: number;
  metadata?: unknown;
}

/** A completely received value that is not stored under a key yet. */
export type KvContent = { bytes: Uint8Array } | { blobKey: string };

/** Larger values are stored in files, because megabytes do not belong in database pages. */
const inlineBytesMax = 128 * 1024;
const purgeBatch = 1000;

/** Key-value namespaces and their entries, for the API and for bindings. */
export class KvNamespaces {
  readonly #storage: Storage;
  readonly #blobs: Blobs;
  /** Number of entries that have expired and were removed. */
  expired = 0;

  constructor(storage: Storage, blobs: Blobs) {
    this.#storage = storage;
    this.#blobs = blobs;
  }

  async listNamespaces(accountId: string): Promise<KvNamespace[]> {
    return store.listNamespaces(this.#storage.read, accountId);
  }

  async findNamespace(accountId: string, id: string): Promise<KvNamespace | undefined> {
    const namespace = await store.findNamespace(this.#storage.read, id);
    return namespace?.accountId === accountId ? namespace : undefined;
  }

  async getNamespace(accountId: string, id: string): Promise<KvNamespace> {
    const namespace = await this.findNamespace(accountId, id);
    if (namespace === undefined) throw kvErrors.namespaceNotFound(id);
    return namespace;
  }

  async createNamespace(accountId: string, title: string): Promise<KvNamespace> {
    return this.#saveNamespace({ id: newId(), accountId, title, createdOn: clock.now() });
  }

  async renameNamespace(namespace: KvNamespace, title: string): Promise<KvNamespace> {
    return this.#saveNamespace({ ...namespace, title });
  }

  async deleteNamespace({ id }: KvNamespace): Promise<void> {
    // In batches, because all other queries wait while a statement runs.
    await this.#removeAll((trx) => store.removeSome(trx, id, purgeBatch));
    await this.#storage.write((trx) => store.removeNamespace(trx, id));
  }

  async get(namespaceId: string, key: string): Promise<KvEntry | undefined> {
    const bytes = keyBytes(key);
    // A value in a file may be replaced between the two reads; reading again finds the new one.
    for (let attempt = 0; attempt < 3; attempt++) {
      const entry = await store.find(this.#storage.read, namespaceId, bytes);
      if (entry === undefined) return undefined;
      const properties = {
        metadata: entry.metadata === null ? undefined : (JSON.parse(entry.metadata) as unknown),
        expiration: entry.expiresOn === null ? undefined : Math.floor(entry.expiresOn / 1000),
      };
      if (entry.blobKey === null)
        return { content: entry.value!, sizeBytes: entry.value!.length, ...properties };
      const blob = await this.#blobs.get(entry.blobKey);
      if (blob !== undefined) return { content: blob.stream, sizeBytes: blob.sizeBytes, ...properties };
    }
    throw new Error(`the value of a key in the namespace ${namespaceId} is missing from the blobs`);
  }

  /** Values as text, limited in total size; null for keys that do not exist. */
  async getMany(
    namespaceId: string,
    keys: readonly string[],
    bytesMax: number,
  ): Promise<Map<string, KvText | null>> {
    const found = new Map<string, KvText | null>();
    let bytes = 0;
    for (const key of new Set(keys)) {
      const entry = await this.get(namespaceId, key);
      if (entry === undefined) {
        found.set(key, null);
        continue;
      }
      const { content, sizeBytes, metadata, expiration } = entry;
      bytes += sizeBytes;
      if (bytes > bytesMax) {
        if (!(content instanceof Uint8Array)) content.destroy();
        throw kvErrors.tooMuch(bytesMax);
      }
      found.set(key, { text: await textOf(content), metadata, expiration });
    }
    return found;
  }

  /** Receives a value: small values in memory, large ones on disk. */
  async receive(namespaceId: string, content: Uint8Array | AsyncIterable<Uint8Array>): Promise<KvContent> {
    if (content instanceof Uint8Array && content.length <= inlineBytesMax) return { bytes: content };
    const chunks = limited(content instanceof Uint8Array ? [content] : content);
    const head: Uint8Array[] = [];
    let length = 0;
    while (length <= inlineBytesMax) {
      const next = await chunks.next();
      if (next.done === true) return { bytes: Buffer.concat(head) };
      head.push(next.value);
      length += next.value.length;
    }
    const blobKey = `kv/${namespaceId}/${newUuid()}`;
    try {
      await this.#blobs.put(blobKey, concatenated(head, chunks));
    } finally {
      // When writing fails, nothing has read the rest, and its source would wait forever.
      await chunks.return();
    }
    return { blobKey };
  }

  async put(
    namespaceId: string,
    key: string,
    content: Uint8Array | AsyncIterable<Uint8Array>,
    options: KvPut = {},
  ): Promise<void> {
    entryOf(key, options); // validates before the value is received
    await this.putReceived(namespaceId, [
      { key, content: await this.receive(namespaceId, content), options },
    ]);
  }

  /** Stores received values: all of them, or none. */
  async putReceived(
    namespaceId: string,
    entries: readonly { key: string; content: KvContent; options: KvPut }[],
  ): Promise<void> {
    const checked: (CheckedEntry & { content: KvContent })[] = [];
    const slices = new Slices();
    try {
      for (const { key, content, options } of entries) {
        checked.push({ ...entryOf(key, options), content });
        await slices.rest();
      }
    } catch (error) {
      await this.discard(entries.map(({ content }) => content));
      throw error;
    }
    await this.#write(namespaceId, checked);
  }

  /** Deletes received values that will not be stored. */
  async discard(contents: readonly KvContent[]): Promise<void> {
    await this.#dropBlobs(contents.flatMap((content) => ("blobKey" in content ? [content.blobKey] : [])));
  }

  /** Deletes keys; ignores those that do not exist. */
  async delete(namespaceId: string, keys: readonly string[]): Promise<void> {
    const bytes = keys.map(keyBytes);
    const blobs = await this.#storage.write(async (trx) => {
      const dropped: string[] = [];
      const slices = new Slices();
      for (let at = 0; at < bytes.length; at += purgeBatch) {
        dropped.push(...(await store.remove(trx, namespaceId, bytes.slice(at, at + purgeBatch))));
        await slices.rest();
      }
      return dropped;
    });
    await this.#dropBlobs(blobs);
  }

  /** Keys in order of their UTF-8 bytes. Returns a cursor when there are more. */
  async list(
    namespaceId: string,
    options: { prefix?: string | undefined; limit?: number | undefined; cursor?: string | undefined } = {},
  ): Promise<{ keys: KvKey[]; cursor: string | undefined }> {
    const limit = Math.min(options.limit ?? kvLimits.listMax, kvLimits.listMax);
    const rows = await store.list(this.#storage.read, namespaceId, {
      prefix: Buffer.from(options.prefix ?? ""),
      after: options.cursor === undefined || options.cursor === "" ? undefined : readCursor(options.cursor),
      limit: limit + 1,
    });
    const page = rows.slice(0, limit);
    const keys = page.map(({ key, metadata, expiresOn }) => ({
      name: Buffer.from(key).toString(),
      ...(expiresOn === null ? {} : { expiration: Math.floor(expiresOn / 1000) }),
      ...(metadata === null ? {} : { metadata: JSON.parse(metadata) as unknown }),
    }));
    return { keys, cursor: rows.length > limit ? cursorAfter(page.at(-1)!.key) : undefined };
  }

  /** Removes unreferenced files, which a process leaves behind when it dies; called by a timer. */
  async removeOrphans(now = clock.now()): Promise<void> {
    await onOneNode(this.#storage, "kv", () =>
      this.#blobs.removeUnnamed("kv", now - orphanAgeMs, async (keys) =>
        store.namedBlobs(this.#storage.read, keys),
      ),
    );
  }

  /** Removes expired entries; called by a timer. Reads hide them before. */
  async purge(): Promise<void> {
    this.expired += await this.#removeAll((trx) => store.removeExpired(trx, purgeBatch));
  }

  /** Returns the number of removed entries. */
  async #removeAll(removeSome: (trx: Write) => Promise<store.Removed>): Promise<number> {
    for (let total = 0; ;) {
      const { count, blobs } = await this.#storage.write(removeSome);
      await this.#dropBlobs(blobs);
      total += count;
      if (count < purgeBatch) return total;
    }
  }

  async #write(
    namespaceId: string,
    entries: readonly (CheckedEntry & { content: KvContent })[],
  ): Promise<void> {
    const discard = (): Promise<void> => this.discard(entries.map(({ content }) => content));
    const replaced = await writeNaming(this.#storage, discard, async (trx) => {
      const blobs: string[] = [];
      const slices = new Slices();
      for (const { content, ...entry } of entries) {
        const storedValue =
          "bytes" in content
            ? { value: content.bytes, blobKey: null }
            : { value: null, blobKey: content.blobKey };
        blobs.push(...(await store.put(trx, namespaceId, { ...entry, ...storedValue })));
        await slices.rest();
      }
      return blobs;
    }).catch((error: unknown) => {
      throw isForeignKeyViolation(error) ? kvErrors.namespaceNotFound(namespaceId) : error;
    });
    await this.#dropBlobs(replaced);
  }

  async #saveNamespace(namespace: KvNamespace): Promise<KvNamespace> {
    try {
      await this.#storage.write((trx) => store.putNamespace(trx, namespace));
    } catch (error) {
      throw isUniqueViolation(error) ? kvErrors.titleExists() : error;
    }
    return namespace;
  }

  /** Deletes blobs that no entry names. While the store is away they stay, for `removeOrphans`. */
  async #dropBlobs(keys: readonly string[]): Promise<void> {
    const deleting = keys.map((key) => this.#blobs.delete(key));
    for (const { reason } of (await Promise.allSettled(deleting)) as { reason?: unknown }[])
      if (reason !== undefined && !isBlobsUnavailable(reason)) throw reason;
  }
}

async function textOf(content: Uint8Array | Readable): Promise<string> {
  if (content instanceof Uint8Array) return Buffer.from(content).toString();
  const chunks: Buffer[] = [];
  for await (const chunk of content as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

type CheckedEntry = Pick<store.StoredEntry, "key" | "metadata" | "expiresOn">;

/** The stored form of an entry without its value. Throws when the key, metadata or expiration is invalid. */
export function entryOf(key: string, { metadata, expiration, expirationTtl }: KvPut): CheckedEntry {
  const text = metadata === undefined ? null : JSON.stringify(metadata);
  const bytes = Buffer.byteLength(text ?? "");
  if (bytes > kvLimits.metadataBytesMax) throw kvErrors.metadata(bytes);
  return { key: keyBytes(key), metadata: text, expiresOn: expiryOf(expiration, expirationTtl) };
}

function expiryOf(expiration: number | undefined, ttl: number | undefined): number | null {
  const earliest = clock.now() + kvLimits.ttlSecondsMin * 1000;
  if (ttl !== undefined) {
    if (!(ttl >= kvLimits.ttlSecondsMin && ttl <= kvLimits.secondsMax))
      throw kvErrors.expiration("an expiration_ttl in seconds");
    return clock.now() + Math.floor(ttl) * 1000;
  }
  if (expiration === undefined) return null;
  // One second of tolerance, since clients round the time down.
  if (!(expiration * 1000 >= earliest - 1000 && expiration <= kvLimits.secondsMax))
    throw kvErrors.expiration("an expiration in seconds since 1970");
  return Math.floor(expiration) * 1000;
}

function keyBytes(key: string): Uint8Array {
  const bytes = Buffer.from(key);
  if (bytes.length === 0 || bytes.length > kvLimits.keyBytesMax || key === "." || key === "..")
    throw kvErrors.key(bytes.length);
  return bytes;
}

const cursorAfter = (key: Uint8Array): string => Buffer.from(key).toString("base64url");

function readCursor(cursor: string): Uint8Array {
  const key = Buffer.from(cursor, "base64url");
  if (key.length === 0 || key.length > kvLimits.keyBytesMax || cursorAfter(key) !== cursor)
    throw kvErrors.cursor();
  return key;
}

async function* limited(
  content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void> {
  let length = 0;
  for await (const chunk of content) {
    length += chunk.length;
    if (length > kvLimits.valueBytesMax) throw kvErrors.tooLarge();
    yield chunk;
  }
}

async function* concatenated(
  head: readonly Uint8Array[],
  rest: AsyncGenerator<Uint8Array, void>,
): AsyncGenerator<Uint8Array> {
  yield* head;
  yield* rest;
}

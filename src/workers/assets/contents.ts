import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { Readable } from "node:stream";
import type { LRUCache } from "lru-cache";
import type { Blobs } from "../../platform/storage/blobs.ts";
import type { AssetFile } from "./asset.ts";
import type { Encoding } from "./negotiation.ts";

/** Larger files are compressed at a lower level, because the first request waits for it. */
const thoroughBytesMax = 1024 * 1024;

const compress = {
  br: async (bytes: Buffer) =>
    promisify(brotliCompress)(bytes, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: bytes.length <= thoroughBytesMax ? 9 : 5,
        [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
      },
    }),
  gzip: async (bytes: Buffer) => promisify(gzip)(bytes, { level: bytes.length <= thoroughBytesMax ? 9 : 6 }),
};

/** Bytes of files that are read into memory at the same time; further requests wait. */
const loadingBytesMax = 64 * 1024 * 1024;

/** A cache of the bytes of assets, plain and compressed. */
export class AssetContents {
  readonly #blobs: Blobs;
  readonly #cache: LRUCache<string, Buffer>;
  readonly #loading = new Map<string, Promise<Buffer>>();
  readonly #waiting: (() => void)[] = [];
  #loadingBytes = 0;

  constructor(blobs: Blobs, cache: LRUCache<string, Buffer>) {
    this.#blobs = blobs;
    this.#cache = cache;
  }

  /** The bytes if they are in memory. */
  peek(file: AssetFile, encoding: Encoding): Buffer | undefined {
    return this.#cache.get(keyOf(file, encoding));
  }

  /** Reads and compresses a file, once for all concurrent callers. */
  async load(file: AssetFile, encoding: Encoding): Promise<Buffer> {
    const key = keyOf(file, encoding);
    const cached = this.#cache.get(key);
    if (cached !== undefined) return cached;
    const running = this.#loading.get(key);
    if (running !== undefined) return running;
    const loading = this.#inTurn(file.sizeBytes, async () => this.#encoded(file, encoding)).finally(() =>
      this.#loading.delete(key),
    );
    this.#loading.set(key, loading);
    const bytes = await loading;
    this.#cache.set(key, bytes);
    return bytes;
  }

  async stream(file: AssetFile, range?: { start: number; end: number }): Promise<Readable> {
    const blob = await this.#blobs.get(file.blobKey, range);
    if (blob === undefined) throw new Error(`the blob ${file.blobKey} is missing`);
    return blob.stream;
  }

  async #inTurn<T>(bytes: number, work: () => Promise<T>): Promise<T> {
    while (this.#loadingBytes + bytes > loadingBytesMax)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#loadingBytes += bytes;
    try {
      return await work();
    } finally {
      this.#loadingBytes -= bytes;
      for (const resolve of this.#waiting.splice(0)) resolve();
    }
  }

  async #encoded(file: AssetFile, encoding: Encoding): Promise<Buffer> {
    const bytes = this.peek(file, "identity") ?? (await this.#read(file));
    return encoding === "identity" ? bytes : compress[encoding](bytes);
  }

  async #read(file: AssetFile): Promise<Buffer> {
    const chunks: Buffer[] = [];
    for await (const chunk of (await this.stream(file)) as AsyncIterable<Buffer>) chunks.push(chunk);
    return Buffer.concat(chunks);
  }
}

const keyOf = (file: AssetFile, encoding: Encoding): string =>
  encoding === "identity" ? file.blobKey : `${file.blobKey}.${encoding}`;

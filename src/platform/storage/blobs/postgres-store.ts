import { Readable } from "node:stream";
import { sql } from "kysely";
import { BlobTooLarge } from "../faults.ts";
import type { Storage } from "../storage.ts";
import { unwitnessed } from "../witness.ts";
import type { BlobStore, Listed, StoredBlob, BlobMetadata } from "./blob-store.ts";
import type { BlobContent } from "./content.ts";

const chunkBytes = 256 * 1024;
/**
 * A limit, because a read costs 9 to 12 times that of a file, and all bytes go through PostgreSQL's
 * write-ahead log.
 */
const bytesMax = 25 * 1024 * 1024;
const keysAtOnce = 1000;

/** Blobs as rows of the database, for small installations. Content is in chunks, so that no query is large. */
export class PostgresStore implements BlobStore {
  readonly kind = "postgres";
  readonly bytesMax = bytesMax;
  readonly #storage: Storage;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  async put(key: string, content: BlobContent): Promise<void> {
    if (content.sizeBytes > bytesMax) throw new BlobTooLarge(bytesMax);
    await this.#storage.write(async (trx) => {
      await trx.deleteFrom("blobs").where("key", "=", key).execute();
      const { sizeBytes, sha256 } = content;
      await trx
        .insertInto("blobs")
        .values({ key, size_bytes: sizeBytes, sha256, written_on: Date.now() })
        .execute();
      for (let number = 0; number * chunkBytes < sizeBytes; number++) {
        const start = number * chunkBytes;
        const bytes = await bytesOf(content.read(start, Math.min(start + chunkBytes, sizeBytes)));
        await trx.insertInto("blob_chunks").values({ key, number, bytes }).execute();
      }
    }, unwitnessed);
  }

  async get(key: string): Promise<StoredBlob | undefined> {
    const head = await this.head(key);
    if (head === undefined) return undefined;
    return { ...head, stream: Readable.from(this.#chunks(key, head), { objectMode: false }) };
  }

  async head(key: string): Promise<BlobMetadata | undefined> {
    const row = await this.#storage.read
      .selectFrom("blobs")
      .select(["size_bytes", "sha256"])
      .where("key", "=", key)
      .executeTakeFirst();
    return row && { sizeBytes: row.size_bytes, sha256: row.sha256 };
  }

  async delete(key: string): Promise<void> {
    await this.#storage.write((trx) => trx.deleteFrom("blobs").where("key", "=", key).execute(), unwitnessed);
  }

  async *list(prefix: string): AsyncGenerator<Listed, void> {
    for (let after = ""; ;) {
      const rows = await this.#storage.read
        .selectFrom("blobs")
        .select(["key", "size_bytes", "written_on"])
        .where(sql<boolean>`starts_with(key, ${prefix}) and key collate "C" > ${after}`)
        .orderBy(sql`key collate "C"`)
        .limit(keysAtOnce)
        .execute();
      const now = Date.now();
      for (const { key, size_bytes, written_on } of rows)
        yield { key, sizeBytes: size_bytes, ageMs: now - written_on };
      if (rows.length < keysAtOnce) return;
      after = rows.at(-1)!.key;
    }
  }

  async folders(prefix: string): Promise<string[]> {
    const rows = await this.#storage.read
      .selectFrom("blobs")
      .select(sql<string>`split_part(substr(key, ${prefix.length + 1}), '/', 1)`.as("name"))
      .distinct()
      .where(sql<boolean>`starts_with(key, ${prefix}) and strpos(substr(key, ${prefix.length + 1}), '/') > 0`)
      .execute();
    return rows.map(({ name }) => name);
  }

  async removeAbandoned(): Promise<void> {} // a transaction leaves nothing behind

  async check(): Promise<void> {} // the storage checks the database

  async renew(): Promise<void> {} // the database has its own credentials

  async close(): Promise<void> {} // the storage belongs to the caller

  async *#chunks(key: string, { sizeBytes }: BlobMetadata): AsyncGenerator<Buffer, void> {
    for (let number = 0; number * chunkBytes < sizeBytes; number++) {
      // `pg` reads bytes as hex; base64 takes half of the time.
      const row = await this.#storage.read
        .selectFrom("blob_chunks")
        .select(sql<string>`encode(bytes, 'base64')`.as("text"))
        .where("key", "=", key)
        .where("number", "=", number)
        .executeTakeFirst();
      if (row === undefined) throw new Error(`the blob ${key} was deleted while it was read`);
      yield Buffer.from(row.text, "base64");
    }
  }
}

async function bytesOf(part: Readable | Uint8Array): Promise<Uint8Array> {
  if (part instanceof Uint8Array) return part;
  const chunks: Buffer[] = [];
  for await (const chunk of part as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

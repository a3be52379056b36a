import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { BlobsUnavailable } from "../faults.ts";
import type { BlobStore, Listed, StoredBlob, BlobMetadata } from "./blob-store.ts";
import type { BlobContent } from "./content.ts";
import { PartBuffers } from "./part-buffers.ts";
import { S3Client, type S3Response, type S3Body, type S3Options } from "./s3-client.ts";
import { putStream } from "./s3-stream.ts";
import { completion, readList, readUploadId, readUploads, S3Fault } from "./s3-xml.ts";
import { sha256 } from "./signature.ts";

const multipartFromBytes = 16 * 1024 * 1024;
const partBytes = 8 * 1024 * 1024;
/** Buffers of all uploads together, which limits their memory. */
const partsAtOnce = 3;
/** The largest content that fits into S3's limit of 10,000 parts. */
const bytesMax = 10_000 * partBytes;
const digestHeader = "x-amz-meta-sha256";
/** A read fails after this many attempts in a row that brought no new byte. */
const resumesMax = 4;

/** Blobs as objects of an S3 bucket. Each object has the digest of its content in its metadata. */
export class S3Store implements BlobStore {
  readonly kind = "s3";
  readonly bytesMax = bytesMax;
  readonly #client: S3Client;
  readonly #buffers = new PartBuffers(partsAtOnce, partBytes);
  /** "" or a text that ends in a slash. */
  readonly #prefix: string;

  constructor(options: S3Options & { prefix: string }) {
    this.#client = new S3Client(options);
    this.#prefix = options.prefix;
  }

  async put(key: string, content: BlobContent): Promise<void> {
    if (content.sizeBytes >= multipartFromBytes) return this.#putParts(key, content);
    await this.#client.text({
      method: "PUT",
      key: this.#prefix + key,
      headers: { [digestHeader]: content.sha256 },
      body: bodyOf(content, 0, content.sizeBytes, content.sha256),
    });
  }

  /** Puts content of unknown length, without a digest. With `isNew`, an object of that name is kept: `S3Fault` 412. */
  async putStream(
    key: string,
    content: AsyncIterable<Uint8Array>,
    options?: { isNew: boolean },
  ): Promise<void> {
    await putStream(this.#client, this.#prefix + key, content, options);
  }

  async get(key: string): Promise<StoredBlob | undefined> {
    const first = await this.#client.open({ method: "GET", key: this.#prefix + key }).catch(missing);
    if (first === undefined) return undefined;
    return { ...metadataOf(first), stream: Readable.from(this.#resumed(key, first), { objectMode: false }) };
  }

  async head(key: string): Promise<BlobMetadata | undefined> {
    const found = await this.#client.text({ method: "HEAD", key: this.#prefix + key }).catch(missing);
    return found === undefined ? undefined : metadataOf(found);
  }

  async delete(key: string): Promise<void> {
    await this.#client.text({ method: "DELETE", key: this.#prefix + key }).catch(missing);
  }

  async *list(prefix: string): AsyncGenerator<Listed, void> {
    const now = this.#client.now();
    for await (const { entries } of this.#pages({ prefix: this.#prefix + prefix }))
      for (const { key, sizeBytes, writtenOn } of entries)
        yield { key: key.slice(this.#prefix.length), sizeBytes, ageMs: now - writtenOn };
  }

  async folders(prefix: string): Promise<string[]> {
    const whole = this.#prefix + prefix;
    const names: string[] = [];
    for await (const { prefixes } of this.#pages({ prefix: whole, delimiter: "/" }))
      names.push(...prefixes.map((each) => each.slice(whole.length, -1)));
    return names;
  }

  async removeAbandoned(olderThanMs: number): Promise<void> {
    const { text } = await this.#client.text({
      method: "GET",
      query: { uploads: "", prefix: this.#prefix },
    });
    for (const { key, uploadId, begunOn } of readUploads(text))
      if (this.#client.now() - begunOn > olderThanMs) await this.#abort(key, uploadId);
  }

  async check(): Promise<void> {
    await this.#client.text({ method: "GET", query: { "list-type": "2", "max-keys": "1" } });
  }

  async renew(): Promise<void> {
    await this.#client.renew();
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  async *#pages(query: Readonly<Record<string, string>>): AsyncGenerator<ReturnType<typeof readList>, void> {
    for (let next: string | undefined = ""; next !== undefined;) {
      const { text } = await this.#client.text({
        method: "GET",
        query: { ...query, "list-type": "2", ...(next === "" ? {} : { "continuation-token": next }) },
      });
      const page = readList(text);
      yield page;
      next = page.next;
    }
  }

  async #putParts(key: string, content: BlobContent): Promise<void> {
    const object = this.#prefix + key;
    const { text } = await this.#client.text({
      method: "POST",
      key: object,
      query: { uploads: "" },
      headers: { [digestHeader]: content.sha256 },
    });
    const uploadId = readUploadId(text);
    try {
      const etags = await this.#putEach(object, uploadId, content);
      await this.#complete(key, uploadId, completion(etags), content);
    } catch (error) {
      await this.#abort(object, uploadId).catch(() => {}); // otherwise the sweep aborts it
      throw error;
    }
  }

  /** Returns the parts' tags. After a failure no part is in progress. */
  async #putEach(object: string, uploadId: string, content: BlobContent): Promise<string[]> {
    const count = Math.ceil(content.sizeBytes / partBytes);
    const etags: string[] = [];
    let next = 0;
    const work = async (): Promise<void> => {
      while (next < count) {
        const index = next++;
        const start = index * partBytes;
        const end = Math.min(start + partBytes, content.sizeBytes);
        const send = async (buffer: Buffer): Promise<S3Response> => {
          const part = await content.readInto(buffer, start, end);
          return this.#client.text({
            method: "PUT",
            key: object,
            query: { partNumber: String(index + 1), uploadId },
            body: { sizeBytes: part.length, sha256: await digestOf(part), open: () => part },
          });
        };
        const { headers } = await this.#buffers.with(send).catch((error: unknown) => {
          next = count; // the others begin no more parts
          throw error;
        });
        etags[index] = headers["etag"] ?? "";
      }
    };
    const ends = await Promise.allSettled(Array.from({ length: Math.min(partsAtOnce, count) }, work));
    for (const end of ends) if (end.status === "rejected") throw end.reason;
    return etags;
  }

  async #complete(key: string, uploadId: string, text: string, content: BlobContent): Promise<void> {
    const bytes = Buffer.from(text);
    try {
      await this.#client.text({
        method: "POST",
        key: this.#prefix + key,
        query: { uploadId },
        body: { sizeBytes: bytes.length, sha256: sha256(bytes), open: () => bytes },
      });
    } catch (error) {
      // The response to an earlier attempt was lost. It has completed the upload, so this attempt did not
      // find it.
      const stored = error instanceof S3Fault && error.status === 404 ? await this.head(key) : undefined;
      if (stored?.sha256 !== content.sha256) throw error;
    }
  }

  async #abort(object: string, uploadId: string): Promise<void> {
    await this.#client.text({ method: "DELETE", key: object, query: { uploadId } }).catch(missing);
  }

  /** The content of a response. When it breaks off, continues with the rest of the same object. */
  async *#resumed(key: string, first: S3Response & { body: Readable }): AsyncGenerator<Buffer, void> {
    const { sizeBytes } = metadataOf(first);
    let { body } = first;
    let at = 0;
    try {
      for (let resumes = 0; ; resumes++) {
        const chunks = body[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
        let broken: unknown;
        for (;;) {
          const step = await chunks.next().catch((error: unknown) => {
            broken = error;
            return { done: true, value: undefined } as const;
          });
          if (step.done === true) break;
          at += step.value.length;
          resumes = 0;
          yield step.value;
        }
        if (at >= sizeBytes) return;
        if (resumes === resumesMax) throw new BlobsUnavailable(broken);
        const headers = { range: `bytes=${at}-`, "if-match": first.headers["etag"] ?? "" };
        const rest = await this.#client.open({ method: "GET", key: this.#prefix + key, headers });
        ({ body } = rest);
        if (rest.status !== 206)
          throw new Error("Expected the rest of a blob but the S3 server sent all of it");
      }
    } finally {
      body.destroy();
    }
  }
}

function metadataOf({ headers }: S3Response): BlobMetadata {
  return { sizeBytes: Number(headers["content-length"]), sha256: headers[digestHeader] ?? "" };
}

const bodyOf = (content: BlobContent, start: number, end: number, digest: string): S3Body => ({
  sizeBytes: end - start,
  sha256: digest,
  open: () => content.read(start, end),
});

/** Bytes that are digested before other work gets its turn. */
const digestBytes = 1024 * 1024;

async function digestOf(part: Uint8Array): Promise<string> {
  const hash = createHash("sha256");
  for (let at = 0; at < part.length; at += digestBytes) {
    hash.update(part.subarray(at, at + digestBytes));
    await setImmediate();
  }
  return hash.digest("hex");
}

/** Returns undefined if an object is missing. Throws other errors, also for a missing bucket. HEAD gives no error code. */
function missing(error: unknown): undefined {
  if (error instanceof S3Fault && error.status === 404 && error.code !== "NoSuchBucket") return undefined;
  throw error;
}

import type { S3Client } from "./s3-client.ts";
import { completion, readUploadId, S3Fault } from "./s3-xml.ts";
import { sha256 } from "./signature.ts";

const firstPartBytes = 8 * 1024 * 1024;
/** Parts grow, so that 10,000 of them hold terabytes while small content needs little memory. */
const partsPerSize = 1000;
const partsMax = 10_000;
const partBytesOf = (index: number): number => firstPartBytes * (1 + Math.floor(index / partsPerSize));

/**
 * Puts content of unknown length, which is read once. One part is in memory, and one is being sent. With
 * `isNew`, an object of that name is kept and the call fails, if the server knows preconditions.
 */
export async function putStream(
  client: S3Client,
  object: string,
  content: AsyncIterable<Uint8Array>,
  { isNew = false }: { isNew?: boolean } = {},
): Promise<void> {
  const headers: Record<string, string> = isNew ? { "if-none-match": "*" } : {};
  let uploadId: string | undefined;
  let sending: Promise<string> = Promise.resolve("");
  const etags: Promise<string>[] = [];
  let bytes = 0;
  try {
    for await (const { part, isLast } of partsOf(content)) {
      bytes += part.length;
      if (isLast && uploadId === undefined) {
        await client.text({ method: "PUT", key: object, headers, body: bodyOf(part) });
        return;
      }
      uploadId ??= await begin(client, object);
      await sending;
      if (etags.length === partsMax) throw new Error(`Expected at most ${partsMax} parts of an object`);
      sending = putPart(client, object, uploadId, etags.length + 1, part);
      sending.catch(() => {}); // awaited before the next part
      etags.push(sending);
    }
    await complete(client, object, uploadId!, { etags: await Promise.all(etags), headers, bytes });
  } catch (error) {
    await sending.catch(() => {});
    if (uploadId !== undefined) await abort(client, object, uploadId).catch(() => {}); // else a sweep does it
    throw error;
  }
}

async function begin(client: S3Client, object: string): Promise<string> {
  return readUploadId((await client.text({ method: "POST", key: object, query: { uploads: "" } })).text);
}

async function complete(
  client: S3Client,
  object: string,
  uploadId: string,
  { etags, headers, bytes }: { etags: string[]; headers: Record<string, string>; bytes: number },
): Promise<void> {
  const body = bodyOf(Buffer.from(completion(etags)));
  await client
    .text({ method: "POST", key: object, query: { uploadId }, headers, body })
    .catch(async (error: unknown) => {
      // The response to an earlier attempt was lost. It has completed the upload, so this attempt did not
      // find it.
      if (!(error instanceof S3Fault) || error.status !== 404) throw error;
      const found = await client.text({ method: "HEAD", key: object }).catch(() => undefined);
      if (Number(found?.headers["content-length"]) !== bytes) throw error;
    });
}

async function abort(client: S3Client, object: string, uploadId: string): Promise<void> {
  await client.text({ method: "DELETE", key: object, query: { uploadId } });
}

async function putPart(
  client: S3Client,
  object: string,
  uploadId: string,
  number: number,
  part: Buffer,
): Promise<string> {
  const query = { partNumber: String(number), uploadId };
  const { headers } = await client.text({ method: "PUT", key: object, query, body: bodyOf(part) });
  return headers["etag"] ?? "";
}

/** Content in parts. A part is empty only if it is the only one. */
async function* partsOf(
  content: AsyncIterable<Uint8Array>,
): AsyncGenerator<{ part: Buffer; isLast: boolean }> {
  let waiting: Uint8Array[] = [];
  let bytes = 0;
  let index = 0;
  for await (const chunk of content) {
    waiting.push(chunk);
    bytes += chunk.length;
    while (bytes > partBytesOf(index)) {
      const joined = Buffer.concat(waiting);
      yield { part: joined.subarray(0, partBytesOf(index)), isLast: false };
      waiting = [joined.subarray(partBytesOf(index))];
      bytes = joined.length - partBytesOf(index);
      index += 1;
    }
  }
  yield { part: Buffer.concat(waiting), isLast: true };
}

const bodyOf = (bytes: Buffer) => ({ sizeBytes: bytes.length, sha256: sha256(bytes), open: () => bytes });

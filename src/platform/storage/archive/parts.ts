import { createHash, type Hash } from "node:crypto";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createZstdCompress, createZstdDecompress } from "node:zlib";
import type { Archive, Part } from "./archive.ts";
import { damaged } from "./errors.ts";

const pieceBytes = 32 * 1024;

/** Writes a file of an archive, durable when the promise resolves. */
export async function writePart(
  files: Archive,
  path: string,
  content: AsyncIterable<Uint8Array>,
): Promise<Part> {
  const hash: Hash = createHash("sha256");
  let bytes = 0;
  const counted = async function* (): AsyncGenerator<Uint8Array> {
    for await (const chunk of content) {
      hash.update(chunk);
      bytes += chunk.length;
      yield chunk;
    }
  };
  await files.write(path, counted());
  return { path, bytes, sha256: hash.digest("hex") };
}

/** Writes compressed lines. The bytes depend on the lines alone, not on how they arrive. */
export async function writeLines(
  files: Archive,
  path: string,
  lines: AsyncIterable<string>,
): Promise<Part & { rows: number }> {
  let rows = 0;
  const counted = async function* (): AsyncGenerator<string> {
    for await (const line of lines) {
      rows += 1;
      yield line;
    }
  };
  const part = await writePart(files, path, compressed(pieces(counted())));
  return { ...part, rows };
}

/** Compresses content with zstd. */
export async function* compressed(content: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  const stream = createZstdCompress();
  const whole = pipeline(Readable.from(content, { objectMode: false }), stream);
  whole.catch(() => {}); // awaited below, after the bytes
  try {
    yield* stream as AsyncIterable<Buffer>;
  } catch {
    // The pipeline's error is the cause.
  }
  await whole;
}

/** Reads the content of a part. Throws, at the latest at the end, if the part is damaged. */
export async function* readPart(files: Archive, part: Part): AsyncGenerator<Uint8Array> {
  const found = await files.read(part.path);
  if (found === undefined) throw damaged(part.path, "is missing");
  const { sizeBytes, stream } = found;
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of stream) {
    if (sizeBytes !== part.bytes) break; // closes the stream
    hash.update(chunk);
    bytes += chunk.length;
    yield chunk;
  }
  if (sizeBytes !== part.bytes || bytes !== part.bytes)
    throw damaged(part.path, `has ${sizeBytes} bytes instead of ${part.bytes}`);
  if (hash.digest("hex") !== part.sha256) throw damaged(part.path);
}

/** Reads a part that zstd compressed. Throws, at the latest at the end, if the part is damaged. */
export async function* readCompressed(files: Archive, part: Part): AsyncGenerator<Buffer> {
  const source = Readable.from(readPart(files, part), { objectMode: false });
  const decompressed = createZstdDecompress();
  const whole = pipeline(source, decompressed).catch((error: unknown) => {
    // A flipped byte may make the compression fail before the digest is known.
    throw isZstdError(error) ? damaged(part.path) : error;
  });
  whole.catch(() => {}); // awaited below, after the bytes
  try {
    yield* decompressed as AsyncIterable<Buffer>;
  } catch (error) {
    if (!isZstdError(error)) throw error;
  }
  await whole;
}

/** Reads compressed lines. Throws, at the latest at the end, if the part is damaged. */
export async function* readLines(files: Archive, part: Part): AsyncGenerator<string> {
  yield* linesOf(readCompressed(files, part));
}

const isZstdError = (error: unknown): boolean =>
  String((error as { code?: unknown }).code).startsWith("ZSTD_error");

export async function* linesOf(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const left: Buffer[] = [];
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      left.push(chunk.subarray(start, end));
      yield Buffer.concat(left.splice(0)).toString();
      start = end + 1;
    }
    if (start < chunk.length) left.push(chunk.subarray(start));
  }
}

/** Joins lines into pieces of one size. */
async function* pieces(lines: AsyncIterable<string>): AsyncGenerator<Buffer> {
  let waiting: Buffer[] = [];
  let bytes = 0;
  for await (const line of lines) {
    const next = Buffer.from(line);
    waiting.push(next);
    bytes += next.length;
    if (bytes < pieceBytes) continue;
    const joined = Buffer.concat(waiting);
    const whole = joined.length - (joined.length % pieceBytes);
    for (let at = 0; at < whole; at += pieceBytes) yield joined.subarray(at, at + pieceBytes);
    waiting = [joined.subarray(whole)];
    bytes = joined.length - whole;
  }
  yield Buffer.concat(waiting);
}

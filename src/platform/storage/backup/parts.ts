import { createHash, type Hash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createZstdCompress, createZstdDecompress } from "node:zlib";
import { damaged, type Part } from "./manifest.ts";

const pieceBytes = 256 * 1024;

/** Writes a file of an archive, on disk when the promise resolves. */
export async function writePart(
  folder: string,
  path: string,
  content: AsyncIterable<Uint8Array>,
): Promise<Part> {
  const file = join(folder, path);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const counter = new Counter();
  await pipeline(content, counter, createWriteStream(file, { flags: "wx", mode: 0o600, flush: true }));
  return { path, ...counter.facts() };
}

/** Writes compressed lines. The bytes depend on the lines alone, not on how they arrive. */
export async function writeLines(
  folder: string,
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
  const compressed = Readable.from(pieces(counted()), { objectMode: false }).pipe(createZstdCompress());
  const part = await writePart(folder, path, compressed);
  return { ...part, rows };
}

/** Reads the content of a part. Throws at the end, at the latest, if it is not as it was written. */
export async function* readPart(folder: string, part: Part): AsyncGenerator<Uint8Array> {
  const file = join(folder, part.path);
  const found = await stat(file).catch(() => undefined);
  if (found === undefined) throw damaged(part.path, "is missing");
  if (found.size !== part.bytes) throw damaged(part.path, `has ${found.size} bytes instead of ${part.bytes}`);
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file, { highWaterMark: pieceBytes })) {
    hash.update(chunk as Buffer);
    yield chunk as Buffer;
  }
  if (hash.digest("hex") !== part.sha256) throw damaged(part.path);
}

/** Reads compressed lines. Throws at the end, at the latest, if they are not as they were written. */
export async function* readLines(folder: string, part: Part): AsyncGenerator<string> {
  const source = Readable.from(readPart(folder, part), { objectMode: false });
  const decompressed = createZstdDecompress();
  const whole = pipeline(source, decompressed).catch((error: unknown) => {
    // A flipped byte may make the compression fail before the digest is known.
    throw isZstdError(error) ? damaged(part.path) : error;
  });
  whole.catch(() => {}); // awaited below, after the lines
  try {
    yield* linesOf(decompressed);
  } catch (error) {
    if (!isZstdError(error)) throw error;
  }
  await whole;
}

const isZstdError = (error: unknown): boolean =>
  String((error as { code?: unknown }).code).startsWith("ZSTD_error");

async function* linesOf(stream: Readable): AsyncGenerator<string> {
  const left: Buffer[] = [];
  for await (const chunk of stream as AsyncIterable<Buffer>) {
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

/** Passes bytes on, and counts and hashes them. */
class Counter extends Transform {
  readonly #hash: Hash = createHash("sha256");
  #bytes = 0;

  override _transform(chunk: Buffer, _encoding: string, done: (error: null, chunk: Buffer) => void): void {
    this.#hash.update(chunk);
    this.#bytes += chunk.length;
    done(null, chunk);
  }

  facts(): { bytes: number; sha256: string } {
    return { bytes: this.#bytes, sha256: this.#hash.digest("hex") };
  }
}

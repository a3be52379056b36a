import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import type { BusboyFileStream, BusboyInstance } from "@fastify/busboy";
import { apiErrors } from "./errors.ts";

/** Limits of a multipart body. Exceeding a limit throws an `ApiError` that names it. */
export interface MultipartLimits {
  /** Bytes of the whole body. */
  bodyBytesMax: number;
  /** Bytes of one part that is read into memory. */
  partBytesMax: number;
  partsMax: number;
}

/** The head of a part of a multipart body (RFC 7578). */
export interface PartHead {
  name: string;
  /** Undefined if the part is not a file. A path in the name is kept. */
  filename: string | undefined;
  contentType: string | undefined;
}

/** A part of a multipart body (RFC 7578), in memory. */
export interface FormPart extends PartHead {
  bytes: Buffer;
}

/** Throws `bodyTooLarge` (413) for a body whose announced length exceeds the limit, before any of it is read. */
export function refuseLongBody(request: IncomingMessage, bytesMax: number): void {
  if (Number(request.headers["content-length"] ?? 0) > bytesMax) throw apiErrors.bodyTooLarge(bytesMax);
}

/** Reads a multipart body into memory, with the parts in their original order. */
export async function readParts(request: IncomingMessage, limits: MultipartLimits): Promise<FormPart[]> {
  refuseLongBody(request, limits.bodyBytesMax);
  const parts: FormPart[] = [];
  await eachPart(request, boundaryOf(request), limits, async (head, stream) => {
    parts.push({ ...head, bytes: await collect(stream) });
  });
  return parts;
}

/** Like `readParts`, for a body in memory whose boundary may appear only in its first line. */
export async function parseParts(
  body: Buffer,
  boundary: string,
  limits: MultipartLimits,
): Promise<FormPart[]> {
  const parts: FormPart[] = [];
  await eachPart(Readable.from(piecesOf(body)), boundary, limits, async (head, stream) => {
    parts.push({ ...head, bytes: await collect(stream) });
  });
  return parts;
}

/** The parser reads a piece to its end, also after a failure. */
function* piecesOf(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += pieceBytes) yield body.subarray(at, at + pieceBytes);
}
const pieceBytes = 64 * 1024;

/**
 * Reads a multipart body as it arrives. `take` gets each part as a stream, must read it to its end, and must limit
 * its size itself: `partBytesMax` is ignored. An error from `take`, or an abort of `signal`, ends the reading and is
 * thrown here.
 */
export async function streamParts(
  request: IncomingMessage,
  limits: MultipartLimits,
  take: (head: PartHead, stream: Readable) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  refuseLongBody(request, limits.bodyBytesMax);
  const ofParts = { ...limits, partBytesMax: limits.bodyBytesMax };
  await eachPart(request, boundaryOf(request), ofParts, take, signal);
}

const typePattern = /^multipart\/form-data\s*;.*\bboundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))/i;

/** The boundary in the content type. Throws 415 if the body is not a form. */
export function boundaryOf(request: IncomingMessage): string {
  const type = request.headers["content-type"] ?? "";
  const match = typePattern.exec(type);
  if (match === null) throw apiErrors.contentType("multipart/form-data with a boundary", type || "none");
  return match[1] ?? match[2]!;
}

async function eachPart(
  body: Readable,
  boundary: string,
  limits: MultipartLimits,
  take: (head: PartHead, stream: Readable) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  const parts = await openParser(boundary, limits, take);
  const { parser, fail } = parts;
  const finished = once(parser, "finish").catch(() => undefined);
  const stopped = new Promise<IteratorResult<Buffer>>((resolve) => {
    signal?.addEventListener("abort", () => {
      fail(signal.reason);
      resolve({ done: true, value: undefined });
    });
  });
  const chunks = body.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>;
  let length = 0;
  try {
    for (;;) {
      const { done, value: chunk } = await Promise.race([chunks.next(), stopped]);
      if (done === true) break;
      length += chunk.length;
      if (length > limits.bodyBytesMax) fail(apiErrors.bodyTooLarge(limits.bodyBytesMax));
      if (parts.failure !== undefined) break;
      if (!parser.write(chunk)) await Promise.race([once(parser, "drain").catch(() => undefined), finished]);
    }
    if (parts.failure === undefined) parser.end();
  } catch (error) {
    fail(error);
  }
  const left = chunks.return?.();
  // After an abort, do not wait for a body that may have stalled.
  if (signal?.aborted !== true) await left;
  if (parts.failure === undefined) await finished;
  // Discard the rest of the body: a destroyed body would block the next request on its connection.
  else body.resume();
  await parts.taken;
  if (parts.failure !== undefined) throw parts.failure;
}

interface OpenParser {
  parser: BusboyInstance;
  /** Ends the parser, and all parts that are being read. */
  fail: (error: unknown) => void;
  /** The first failure, of the parser or of `take`. */
  readonly failure: Error | undefined;
  /** Resolves when `take` has read all parts so far. */
  readonly taken: Promise<void>;
}

/** A parser that passes the parts to `take`, one after the other. */
async function openParser(
  boundary: string,
  limits: MultipartLimits,
  take: (head: PartHead, stream: Readable) => Promise<void>,
): Promise<OpenParser> {
  const { Busboy } = await import("@fastify/busboy");
  const parser = new Busboy({
    headers: { "content-type": `multipart/form-data; boundary="${boundary}"` },
    preservePath: true,
    // Treat every part as a file, so that fields and files keep their order.
    isPartAFile: () => true,
    limits: { parts: limits.partsMax, fileSize: limits.partBytesMax, headerPairs: 20, fieldNameSize: 1024 },
  });
  let taken = Promise.resolve();
  let failure: Error | undefined;
  const streams = new Set<BusboyFileStream>();
  const fail = (error: unknown): void => {
    failure ??= error instanceof Error ? error : new Error("a part was refused", { cause: error });
    if (!parser.destroyed) parser.destroy(failure);
    // Readers of open parts get the error instead of an early end.
    for (const stream of streams) stream.destroy(failure);
  };
  parser.on("file", (name: string, stream: BusboyFileStream, filename: string, _encoding, contentType) => {
    const head = {
      name,
      filename: filename === undefined || filename === "" ? undefined : filename,
      contentType: contentType === "" ? undefined : contentType,
    };
    stream.on("limit", () => fail(apiErrors.bodyTooLarge(limits.partBytesMax)));
    // A reader that stops destroys the stream with an AbortError. The error that `take` throws gives the
    // reason.
    stream.on("error", (error) => error.name !== "AbortError" && fail(malformed(error)));
    stream.on("close", () => streams.delete(stream));
    streams.add(stream);
    taken = taken.then(async () => (failure === undefined ? take(head, stream) : undefined)).catch(fail);
  });
  parser.on("partsLimit", () =>
    fail(apiErrors.invalid(`Expected at most ${limits.partsMax} parts in the form`, "/body")),
  );
  parser.on("error", (error) => fail(malformed(error)));
  return {
    parser,
    fail,
    get failure() {
      return failure;
    },
    get taken() {
      return taken;
    },
  };
}

/** The parser itself fails only for a truncated body. Other errors come from the readers of parts. */
const malformed = (error: unknown): unknown =>
  error instanceof Error && /unexpected end of multipart data/i.test(error.message)
    ? apiErrors.invalid("Expected a well-formed multipart/form-data body but it ends too early", "/body")
    : error;

async function collect(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

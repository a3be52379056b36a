import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import type { BusboyFileStream } from "@fastify/busboy";
import { apiErrors } from "./errors.ts";

export interface MultipartLimits {
  /** Bytes of the whole body. */
  bodyBytesMax: number;
  /** Bytes of one part that is read into memory. */
  partBytesMax: number;
  partsMax: number;
}

export interface PartHead {
  name: string;
  /** Undefined for a part that is no file. Whole: a path in it is kept. */
  filename: string | undefined;
  contentType: string | undefined;
}

export interface Part extends PartHead {
  bytes: Buffer;
}

/** Reads a multipart body into memory, part by part, in their order. */
export async function readParts(request: IncomingMessage, limits: MultipartLimits): Promise<Part[]> {
  const parts: Part[] = [];
  await eachPart(request, boundaryOf(request), limits, async (head, stream) => {
    parts.push({ ...head, bytes: await collect(stream) });
  });
  return parts;
}

/** As `readParts`, of a body that is in memory already and whose boundary may stand only in its first line. */
export async function parseParts(body: Buffer, boundary: string, limits: MultipartLimits): Promise<Part[]> {
  const parts: Part[] = [];
  await eachPart(Readable.from([body]), boundary, limits, async (head, stream) => {
    parts.push({ ...head, bytes: await collect(stream) });
  });
  return parts;
}

/**
 * Reads a multipart body while it arrives. `take` gets each part as a stream and must read it to its end; what it throws
 * ends the reading, and is thrown here; so does the signal, with its reason. `partBytesMax` holds for fields only: whoever
 * takes a file limits it.
 */
export async function streamParts(
  request: IncomingMessage,
  limits: MultipartLimits,
  take: (head: PartHead, stream: Readable) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  const ofParts = { ...limits, partBytesMax: limits.bodyBytesMax };
  await eachPart(request, boundaryOf(request), ofParts, take, signal);
}

const typePattern = /^multipart\/form-data\s*;.*\bboundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))/i;

/** The boundary in the content type. Throws 415 where the body is no form. */
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
  const { Busboy } = await import("@fastify/busboy");
  const parser = new Busboy({
    headers: { "content-type": `multipart/form-data; boundary="${boundary}"` },
    preservePath: true,
    // Every part is taken as a stream, so that fields and files keep the order in which they stand.
    isPartAFile: () => true,
    limits: { parts: limits.partsMax, fileSize: limits.partBytesMax, headerPairs: 20, fieldNameSize: 1024 },
  });
  let taken = Promise.resolve();
  let failure: Error | undefined;
  const streams = new Set<BusboyFileStream>();
  const fail = (error: unknown): void => {
    failure ??= error instanceof Error ? error : new Error(String(error));
    if (!parser.destroyed) parser.destroy(failure);
    // Those who read a part learn that it does not come to its end.
    for (const stream of streams) stream.destroy(failure);
  };
  parser.on("file", (name: string, stream: BusboyFileStream, filename: string, _encoding, contentType) => {
    const head = {
      name,
      filename: filename === undefined || filename === "" ? undefined : filename,
      contentType: contentType === "" ? undefined : contentType,
    };
    stream.on("limit", () => fail(apiErrors.bodyTooLarge(limits.partBytesMax)));
    // Who stops reading ends the stream: what was thrown says why.
    stream.on("error", (error) => error.name !== "AbortError" && fail(malformed(error)));
    stream.on("close", () => streams.delete(stream));
    streams.add(stream);
    taken = taken.then(async () => (failure === undefined ? take(head, stream) : undefined)).catch(fail);
  });
  parser.on("partsLimit", () =>
    fail(apiErrors.invalid(`Expected at most ${limits.partsMax} parts in the form`, "/body")),
  );
  parser.on("error", (error) => fail(malformed(error)));
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
      if (failure !== undefined) break;
      if (!parser.write(chunk)) await Promise.race([once(parser, "drain").catch(() => undefined), finished]);
    }
    if (failure === undefined) parser.end();
  } catch (error) {
    fail(error);
  }
  const left = chunks.return?.();
  // Of a body that stands still, nothing is awaited any more.
  if (signal?.aborted !== true) await left;
  if (failure === undefined) await finished;
  // A body that was destroyed would block its connection for what comes after it: the rest is dropped as it arrives.
  else body.resume();
  await taken;
  if (failure !== undefined) throw failure;
}

const malformed = (error: unknown): Error =>
  apiErrors.invalid(
    `Expected a well-formed multipart/form-data body but received one that does not parse: ${
      error instanceof Error ? error.message : String(error)
    }`,
    "/body",
  );

async function collect(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

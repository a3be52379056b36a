import type { IncomingMessage } from "node:http";
import type { z } from "zod";
import { parseJson } from "../../platform/util/json.ts";
import { apiErrors } from "./errors.ts";
import { boundaryOf, parseParts, refuseLongBody } from "./multipart.ts";
import type { Operation } from "./operation.ts";
import { validate } from "./validation.ts";

/**
 * Reads and validates a call's body. The limit applies to the bytes that arrive, not only to Content-Length.
 */
export async function readBody(
  operation: Operation,
  request: IncomingMessage,
  limitBytes: number,
): Promise<unknown> {
  if (operation.body === undefined || operation.bodyKind === "own") return undefined;
  const contentType = request.headers["content-type"] ?? "";
  const limit = operation.bodyBytesMax ?? limitBytes;
  if (operation.bodyKind === "form") {
    if (!contentType.startsWith("multipart/form-data"))
      throw apiErrors.contentType("multipart/form-data", contentType || "none");
    return validate(operation.body, await formFields(request, await readBytes(request, limit)), "body");
  }
  const bytes = await readBytes(request, limit);
  if (bytes.length === 0) {
    if (operation.bodyOptional) return validate(operation.body, {}, "body");
    throw apiErrors.invalid("Expected a JSON body but received nothing", "/body");
  }
  if (
    contentType !== "" &&
    !operation.acceptAnyContentType &&
    !/^application\/(\S+\+)?json\b/i.test(contentType)
  ) {
    throw apiErrors.contentType("application/json", contentType);
  }
  return validate(operation.body, jsonOf(bytes, limit), "body");
}

/** Reads a JSON body of any content type, for operations with `bodyKind: "own"`. */
export async function readJson<S extends z.ZodType>(
  request: IncomingMessage,
  schema: S,
  limitBytes: number,
): Promise<z.output<S>> {
  const value = validate(schema, jsonOf(await readBytes(request, limitBytes), limitBytes), "body");
  noteBody(request, { value });
  return value;
}

/** Fields of bodies that operations read themselves. The body's schema decides which of them the audit log shows. */
interface OwnBody {
  value: unknown;
  files?: { name: string; bytes: number }[];
}
const ownBodies = new WeakMap<IncomingMessage, OwnBody>();

/** Records a body that an operation read itself, for the audit log. */
export function noteBody(request: IncomingMessage, body: OwnBody): void {
  ownBodies.set(request, body);
}

/** The body that an operation has read itself; undefined until then. */
export const bodyOf = (request: IncomingMessage): OwnBody | undefined => ownBodies.get(request);

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** A manifest may list 100,000 files. With more values, the issues of a wrong body would take all memory. */
const jsonValuesMax = 400_000;

/** The limit on JSON values grows with the limit on bytes. */
function jsonOf(bytes: Uint8Array, limitBytes: number): unknown {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw apiErrors.malformedJson("it is not UTF-8");
  }
  return parseJson(
    text,
    apiErrors.malformedJson,
    Math.min(jsonValuesMax, Math.max(100_000, limitBytes / 16)),
  );
}

const partsMax = 100;

/** The fields of a form: texts, and files. */
async function formFields(
  request: IncomingMessage,
  bytes: Uint8Array,
): Promise<Record<string, string | File>> {
  const limits = { bodyBytesMax: bytes.length, partBytesMax: bytes.length, partsMax };
  const parts = await parseParts(
    Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length),
    boundaryOf(request),
    limits,
  );
  return Object.fromEntries(
    parts.map(({ name, filename, contentType: type = "", bytes: content }) => [
      name,
      filename === undefined ? content.toString() : new File([new Uint8Array(content)], filename, { type }),
    ]),
  );
}

/** Reads a whole body into memory. Throws `bodyTooLarge` (413) as soon as it exceeds `limitBytes`. */
export async function readBytes(request: IncomingMessage, limitBytes: number): Promise<Uint8Array> {
  refuseLongBody(request, limitBytes);
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Events instead of an async iterator, which costs several times as much for a small body.
  await new Promise<void>((resolve, reject) => {
    const take = (chunk: Uint8Array): void => {
      length += chunk.length;
      chunks.push(chunk);
      if (length <= limitBytes) return;
      request.off("data", take).pause();
      reject(apiErrors.bodyTooLarge(limitBytes));
    };
    const gone = (): void => reject(request.errored ?? new Error("The client disconnected"));
    const done = (): void => {
      request.off("close", gone);
      resolve();
    };
    if (request.destroyed) gone();
    else request.on("data", take).once("end", done).once("error", reject).once("close", gone);
  });
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}

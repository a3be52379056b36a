import type { IncomingMessage } from "node:http";
import type { z } from "zod";
import { apiErrors } from "./errors.ts";
import type { Operation } from "./operation.ts";
import { validate } from "./validation.ts";

/** Reads and checks a call's body; the limit holds while it is read, whatever Content-Length said. */
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
    const bytes = await readBytes(request, limit);
    return validate(operation.body, await formFields(bytes, contentType), "body");
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
  return validate(operation.body, parseJson(bytes), "body");
}

/** For an `own` body: JSON of any content type, and of any shape. */
export async function readJson<S extends z.ZodType>(
  request: IncomingMessage,
  schema: S,
  limitBytes: number,
): Promise<z.output<S>> {
  return validate(schema, parseJson(await readBytes(request, limitBytes)), "body");
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(bytes)) as unknown;
  } catch (error) {
    throw apiErrors.malformedJson(error instanceof Error ? error.message : String(error));
  }
}

async function formFields(bytes: Uint8Array, contentType: string): Promise<Record<string, unknown>> {
  let form: FormData;
  try {
    form = await new Response(bytes as Uint8Array<ArrayBuffer>, {
      headers: { "content-type": contentType },
    }).formData();
  } catch {
    throw apiErrors.invalid(
      "Expected a well-formed multipart/form-data body but received one that does not parse",
      "/body",
    );
  }
  return Object.fromEntries(form);
}

export async function readBytes(request: IncomingMessage, limitBytes: number): Promise<Uint8Array> {
  if (Number(request.headers["content-length"] ?? 0) > limitBytes) throw apiErrors.bodyTooLarge(limitBytes);
  const chunks: Uint8Array[] = [];
  let length = 0;
  // By events: for a small body, an iterator costs several times what is done with it.
  await new Promise<void>((resolve, reject) => {
    const take = (chunk: Uint8Array): void => {
      length += chunk.length;
      chunks.push(chunk);
      if (length <= limitBytes) return;
      request.off("data", take).pause();
      reject(apiErrors.bodyTooLarge(limitBytes));
    };
    const gone = (): void => reject(request.errored ?? new Error("The client went away"));
    const done = (): void => {
      request.off("close", gone);
      resolve();
    };
    if (request.destroyed) gone();
    else request.on("data", take).once("end", done).once("error", reject).once("close", gone);
  });
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}

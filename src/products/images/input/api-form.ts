import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { readBytes } from "../../../control/api/body.ts";
import { ApiError } from "../../../control/api/errors.ts";
import { streamParts } from "../../../control/api/multipart.ts";
import { show } from "../../../platform/util/json.ts";
import { imageErrors } from "../errors.ts";
import {
  checkCreator,
  checkCustomId,
  checkMetadata,
  cleanFilename,
  imageLimits,
  type ImageContent,
} from "../image.ts";
import type { Intake } from "../uploads.ts";

/** Fields of an upload form besides the image. */
export interface ImageFields {
  id: string | undefined;
  url: string | undefined;
  meta: Record<string, unknown>;
  requireSignedUrls: boolean;
  creator: string | null;
  expiry: string | undefined;
}
export interface ImageForm extends ImageFields {
  file: { filename: string; content: ImageContent } | undefined;
}
type FieldName = "id" | "url" | "metadata" | "requireSignedURLs" | "creator" | "expiry";

const fieldBytesMax = 8 * 1024;
const partsMax = 64 + 8;
/** The image, plus fields and boundaries. */
const formBytesMax = imageLimits.fileBytesMax + 1024 * 1024;
const slowWindowMs = 30_000;
const slowBytesPerSecond = 1024;

/** Allowed fields besides the image. `ignored` accepts any field without effect, as browsers' forms need. */
type Names = readonly FieldName[] | "ignored";

/**
 * Reads a multipart form and streams its image to `receive`. Discards the received content when the rest of
 * the form fails.
 */
export async function readImageForm(
  request: IncomingMessage,
  names: Names,
  intake: Intake,
): Promise<ImageForm> {
  const type = request.headers["content-type"] ?? "";
  if (!/^multipart\/form-data\b/i.test(type)) throw imageErrors.notForm(type || "no content type");
  if (Number(request.headers["content-length"] ?? 0) > formBytesMax)
    throw imageErrors.tooLarge(imageLimits.fileBytesMax);
  const fields = new Fields(names);
  const received: { file?: ImageForm["file"] } = {};
  try {
    const limits = { bodyBytesMax: formBytesMax, partBytesMax: fieldBytesMax, partsMax };
    await inTime(request, async (signal) =>
      streamParts(
        request,
        limits,
        async (head, stream) => {
          if (head.name !== "file") return fields.set(head.name, await textOf(stream, head.name));
          if (received.file !== undefined)
            throw imageErrors.invalidUpload("Expected one file but received two", "/body/file");
          received.file = { filename: cleanFilename(head.filename), content: await intake.receive(stream) };
        },
        signal,
      ),
    );
    return { ...fields.parse(), file: received.file };
  } catch (error) {
    if (received.file !== undefined) await intake.discard(received.file.content.blobKey);
    if ((error as NodeJS.ErrnoException).code === "ECONNRESET") throw imageErrors.aborted();
    if (error instanceof ApiError && error.code === 6413)
      throw imageErrors.tooLarge(imageLimits.fileBytesMax);
    if (error instanceof ApiError && error.code === 9207)
      throw imageErrors.invalidUpload(error.message, error.pointer);
    throw error;
  }
}

/** Reads fields without a file, as JSON, multipart or urlencoded. */
export async function readImageFields(
  request: IncomingMessage,
  names: readonly FieldName[],
): Promise<ImageFields> {
  const type = (request.headers["content-type"] ?? "").toLowerCase();
  if (type.startsWith("multipart/form-data")) {
    const refuse = async (): Promise<ImageContent> => {
      throw imageErrors.invalidUpload("Expected no file: upload it to the uploadURL", "/body/file");
    };
    const { file: _none, ...fields } = await readImageForm(request, names, {
      receive: refuse,
      discard: async () => {},
    });
    return fields;
  }
  const text = Buffer.from(await readBytes(request, 64 * 1024)).toString();
  const fields = new Fields(names);
  if (type.startsWith("application/x-www-form-urlencoded")) {
    for (const [name, value] of new URLSearchParams(text)) fields.set(name, value);
  } else if (text.trim() !== "") {
    for (const [name, value] of Object.entries(jsonObject(text, "the body"))) fields.set(name, value);
  }
  return fields.parse();
}

/** Collects fields by name; metadata comes whole, or one value at a time in bracket notation. */
class Fields {
  readonly #names: Names;
  readonly #values = new Map<string, unknown>();
  #meta: Record<string, unknown> | undefined;

  constructor(names: Names) {
    this.#names = names;
  }

  set(name: string, value: unknown): void {
    if (this.#names === "ignored") return;
    if (/^metadata[.[]/.test(name) && this.#names.includes("metadata")) {
      this.#meta ??= {};
      assign(this.#meta, name, String(value));
    } else if ((this.#names as readonly string[]).includes(name)) {
      if (this.#values.has(name))
        throw imageErrors.invalidUpload(`Expected one ${name} but received two`, `/body/${name}`);
      this.#values.set(name, value);
    } else {
      throw imageErrors.invalidUpload(
        `Expected ${this.#names.length === 0 ? "no field beside file" : `the fields ${this.#names.join(", ")}`} but received ${show(name)}`,
        `/body/${name}`,
      );
    }
  }

  parse(): ImageFields {
    const id = this.#text("id");
    const creator = this.#text("creator");
    return {
      id: id === undefined ? undefined : checkCustomId(id),
      url: this.#text("url"),
      meta: this.#metadata(),
      requireSignedUrls: this.#flag("requireSignedURLs"),
      creator: creator === undefined ? null : checkCreator(creator),
      expiry: this.#text("expiry"),
    };
  }

  #text(name: FieldName): string | undefined {
    const value = this.#values.get(name);
    if (value === undefined || value === null) return undefined;
    if (typeof value === "string") return value;
    throw imageErrors.invalidUpload(`Expected text for ${name}`, `/body/${name}`);
  }

  #flag(name: FieldName): boolean {
    const value = this.#values.get(name) ?? false;
    if (value === true || value === "true") return true;
    if (value === false || value === "false") return false;
    throw imageErrors.invalidUpload(
      `Expected true or false for ${name} but received ${JSON.stringify(value)}`,
      `/body/${name}`,
    );
  }

  #metadata(): Record<string, unknown> {
    const value = this.#values.get("metadata");
    const whole =
      typeof value === "string" ? (value === "" ? {} : jsonObject(value, "metadata")) : (value ?? {});
    return checkMetadata({ ...checkMetadata(whole), ...this.#meta });
  }
}

const levelsMax = 5;

/**
 * Assigns `metadata[a][b]`, or the Go client's `metadata.a.b`, in an object. Values stay strings, since the
 * notations have no types.
 */
function assign(meta: Record<string, unknown>, name: string, value: string): void {
  const isDotted = name.startsWith("metadata.");
  const steps = isDotted
    ? name.split(".").slice(1)
    : [...name.matchAll(/\[([^[\]]*)\]/g)].map((match) => match[1]!);
  const isWhole = isDotted || `metadata${steps.map((step) => `[${step}]`).join("")}` === name;
  const isSafe = steps.every((step) => step !== "" && step !== "__proto__");
  if (!isWhole || !isSafe || steps.length > levelsMax)
    throw imageErrors.invalidUpload(
      `Expected metadata[name], at most ${levelsMax} levels deep, but received ${JSON.stringify(name.slice(0, 80))}`,
      "/body/metadata",
    );
  let node = meta;
  for (const step of steps.slice(0, -1)) {
    const next = Object.hasOwn(node, step) ? node[step] : undefined;
    node = (typeof next === "object" ? next : (node[step] = {})) as Record<string, unknown>;
  }
  node[steps.at(-1)!] = value;
}

function jsonObject(text: string, what: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw imageErrors.invalidUpload(
    `Expected a JSON object for ${what} but received ${JSON.stringify(text.slice(0, 80))}`,
    "/body/metadata",
  );
}

async function textOf(stream: Readable, name: string): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > fieldBytesMax)
      throw imageErrors.invalidUpload(
        `Expected at most ${fieldBytesMax} bytes for ${name.slice(0, 80)}`,
        "/body",
      );
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** Aborts uploads that are too slow. */
async function inTime(request: IncomingMessage, read: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const slow = new AbortController();
  let before = request.socket.bytesRead;
  const timer = setInterval(() => {
    const now = request.socket.bytesRead;
    if (!request.complete && now - before < (slowBytesPerSecond * slowWindowMs) / 1000)
      slow.abort(imageErrors.uploadTooSlow());
    before = now;
  }, slowWindowMs);
  try {
    await read(slow.signal);
  } finally {
    clearInterval(timer);
  }
}

import type { IncomingMessage } from "node:http";
import { noteBody, readBytes } from "./body.ts";
import { parseJson } from "../../platform/util/json.ts";
import { apiErrors } from "./errors.ts";
import { boundaryOf, parseParts, readParts, type MultipartLimits, type FormPart } from "./multipart.ts";

/** The form of a script's or snippet's upload. */
export interface UploadForm {
  /** The metadata as one object, from any notation that clients use. */
  metadata: Record<string, unknown>;
  /** The parts with a file name: the modules. */
  files: { name: string; contentType: string | undefined; bytes: Buffer }[];
}

/**
 * Reads code and its metadata in each notation that clients send: a JSON part; one field for each value, with
 * brackets (`metadata[bindings][][name]`); or with dots (`metadata.main_module`).
 */
export async function readUploadForm(
  request: IncomingMessage,
  limits: MultipartLimits,
  metadataName = "metadata",
): Promise<UploadForm> {
  return noted(request, uploadForm(await readParts(request, limits), metadataName), metadataName);
}

/**
 * Like `readUploadForm`, for the two uploads that the official client labels `application/javascript` without
 * a boundary. The body is a form (its first line is the boundary), JSON, or plain JavaScript, which is
 * returned as the file `body`.
 */
export async function readSniffedUploadForm(
  request: IncomingMessage,
  limits: MultipartLimits,
): Promise<UploadForm> {
  if (/^multipart\//i.test(request.headers["content-type"] ?? "")) {
    boundaryOf(request);
    return readUploadForm(request, limits);
  }
  const body = Buffer.from(await readBytes(request, limits.bodyBytesMax));
  const firstLine = body.subarray(0, Math.min(body.length, 300)).toString("latin1").split("\r\n", 1)[0]!;
  if (firstLine.startsWith("--") && /content-disposition/i.test(body.subarray(0, 1000).toString("latin1")))
    return noted(request, uploadForm(await parseParts(body, firstLine.slice(2), limits), "metadata"));
  if (body.toString("latin1", 0, 1) === "{") {
    const { metadata } = jsonIn(body.toString(), "body") as { metadata?: unknown };
    return noted(request, { metadata: object(metadata ?? {}, "metadata"), files: [] });
  }
  return {
    metadata: { body_part: "body" },
    files: [{ name: "body", contentType: request.headers["content-type"], bytes: body }],
  };
}

/** Records the metadata and the names of the files for the audit log. */
function noted(request: IncomingMessage, form: UploadForm, metadataName = "metadata"): UploadForm {
  const files = form.files.map(({ name, bytes }) => ({ name, bytes: bytes.length }));
  noteBody(request, { value: { [metadataName]: form.metadata }, files });
  return form;
}

/** The parts with names such as `metadata[author][name]`, as one object; undefined if there are none. */
export function nestedFields(parts: readonly FormPart[], root: string): Record<string, unknown> | undefined {
  const under = parts.filter(({ name }) => isUnder(name, root));
  if (under.length === 0) return undefined;
  const fields: Record<string, unknown> = {};
  for (const { name, bytes, contentType } of under)
    assign(fields, pathOf(name.slice(root.length)), value(bytes.toString(), contentType));
  return fields;
}

function uploadForm(parts: readonly FormPart[], metadataName: string): UploadForm {
  const files: UploadForm["files"] = [];
  let metadata: Record<string, unknown> = {};
  for (const { name, filename, contentType, bytes } of parts) {
    if (name === metadataName) {
      metadata = { ...metadata, ...object(jsonIn(bytes.toString(), metadataName), metadataName) };
    } else if (filename === undefined && isUnder(name, metadataName)) {
      assign(metadata, pathOf(name.slice(metadataName.length)), value(bytes.toString(), contentType));
    } else {
      files.push({ name: filename ?? name, contentType, bytes });
    }
  }
  return { metadata, files };
}

const isUnder = (name: string, root: string): boolean =>
  name.startsWith(`${root}[`) || name.startsWith(`${root}.`);

/**
 * Splits `[bindings][][name]` or `.bindings.0.name` into steps. An empty step is the next element of an
 * array.
 */
function pathOf(text: string): string[] {
  const steps = text.startsWith("[")
    ? [...text.matchAll(/\[([^[\]]*)\]/g)].map((match) => match[1]!)
    : text.slice(1).split(".");
  if (steps.length === 0 || steps.length > 8 || steps.some((step) => forbidden.has(step)))
    throw apiErrors.invalid(`Expected a field of the metadata but received ${JSON.stringify(text)}`, "/body");
  return steps;
}
const forbidden: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** Sets one value. In an array of objects, a repeated key begins a new element. */
function assign(target: Record<string, unknown>, steps: readonly string[], leaf: unknown): void {
  let node: unknown = target;
  steps.forEach((step, i) => {
    const isLast = i === steps.length - 1;
    const next = steps[i + 1];
    const isArrayNext = next === "" || /^\d+$/.test(next ?? "");
    if (Array.isArray(node)) {
      const index = step === "" ? indexOf(node, steps.slice(i + 1)) : Number(step);
      if (index > 10_000) throw apiErrors.invalid("Expected a smaller index in the metadata", "/body");
      if (isLast) node[index] = leaf;
      else node = node[index] ??= isArrayNext ? [] : {};
    } else {
      const parent = node as Record<string, unknown>;
      if (isLast) parent[step] = leaf;
      else {
        if (typeof parent[step] !== "object") parent[step] = isArrayNext ? [] : {};
        node = parent[step];
      }
    }
  });
}

function indexOf(array: readonly unknown[], rest: readonly string[]): number {
  const last = array.at(-1);
  if (rest.length === 0 || last === undefined || typeof last !== "object") return array.length;
  // Nested arrays continue in the last element. A plain key that it already has begins a new one.
  const isNew = rest.length === 1 && Object.hasOwn(last as object, rest[0]!);
  return isNew ? array.length : array.length - 1;
}

function value(text: string, contentType: string | undefined): unknown {
  if (contentType?.startsWith("application/json") === true) return jsonIn(text, "metadata");
  if (text === "true" || text === "false") return text === "true";
  return text;
}

const jsonIn = (text: string, what: string): unknown =>
  parseJson(text, (why) => apiErrors.invalid(`Expected JSON in ${what} but ${why}`, `/${what}`));

function object(parsed: unknown, what: string): Record<string, unknown> {
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    throw apiErrors.invalid(`Expected ${what} to be a JSON object`, `/${what}`);
  return { ...(parsed as Record<string, unknown>) };
}

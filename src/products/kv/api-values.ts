import { Readable } from "node:stream";
import { z } from "zod";
import { apiErrors } from "../../control/api/errors.ts";
import { readParts, type FormPart } from "../../control/api/multipart.ts";
import { operationsFor } from "../../control/api/operation.ts";
import { nestedFields } from "../../control/api/upload-form.ts";
import { parseJson } from "../../platform/util/json.ts";
import { kvErrors } from "./errors.ts";
import { kvLimits } from "./limits.ts";
import type { KvNamespaces } from "./kv.ts";
import { edit, namespaceOf, namespacePath, read } from "./namespace-call.ts";
import { sensitive } from "../../control/api/sensitive.ts";

/** The services that these operations use. */
interface Services {
  kv: KvNamespaces;
}

const { operation, rawOperation } = operationsFor<Services>();

const valuePath = `${namespacePath}/values/{key_name}`;
const KeySchema = z
  .object({ name: z.string(), expiration: z.int().optional(), metadata: z.unknown().optional() })
  .meta({ id: "KvKey" });

const seconds = z.coerce.number().int().min(0).max(100_000_000_000);
const WriteQuery = z.object({ expiration: seconds.optional(), expiration_ttl: seconds.optional() });

const formOverheadBytes = 64 * 1024;
const formLimits = {
  bodyBytesMax: kvLimits.valueBytesMax + formOverheadBytes,
  partBytesMax: kvLimits.valueBytesMax,
  partsMax: 100,
};

export const valueOperations = [
  operation({
    id: "kv_key_list",
    method: "GET",
    path: `${namespacePath}/keys`,
    summary: "List keys in byte order; a cursor continues after the last key",
    ...read,
    query: z.object({
      limit: z.coerce.number().int().min(1).max(kvLimits.listMax).default(kvLimits.listMax),
      prefix: z.string().max(kvLimits.keyBytesMax).optional(),
      cursor: z.string().max(1024).optional(),
    }),
    result: z.array(KeySchema),
    async handle(call) {
      const { id } = await namespaceOf(call);
      const { keys, cursor } = await call.services.kv.list(id, call.query);
      call.resultInfo = { count: keys.length, cursor: cursor ?? "" };
      return keys;
    },
  }),
  rawOperation({
    id: "kv_value_get",
    method: "GET",
    path: valuePath,
    summary: "Read the value of a key, unchanged",
    ...read,
    async handle(call) {
      const { id } = await namespaceOf(call);
      const entry = await call.services.kv.get(id, call.params["key_name"]!);
      if (entry === undefined) throw kvErrors.keyNotFound();
      const { content, sizeBytes, expiration } = entry;
      const body =
        content instanceof Uint8Array
          ? (content as Uint8Array<ArrayBuffer>)
          : (Readable.toWeb(content) as ReadableStream<Uint8Array>);
      const headers = new Headers({
        "content-type": "application/octet-stream",
        "content-length": String(sizeBytes),
        "x-request-id": call.requestId,
      });
      if (expiration !== undefined) headers.set("expiration", String(expiration));
      return new Response(body, { headers });
    },
  }),
  operation({
    id: "kv_value_put",
    method: "PUT",
    path: valuePath,
    summary: "Write a value: the body as it is, or a form with the parts value and metadata",
    ...edit,
    query: WriteQuery,
    body: z.union([
      z.string().meta({ format: "binary" }),
      z.object({ value: sensitive(z.string()), metadata: z.unknown() }),
    ]),
    bodyKind: "own",
    acceptAnyContentType: true,
    result: z.null(),
    async handle(call) {
      const { kv } = call.services;
      const { expiration, expiration_ttl: expirationTtl } = call.query;
      const [{ id }, key] = [await namespaceOf(call), call.params["key_name"]!];
      const options = { expiration, expirationTtl };
      if (/^multipart\/form-data/i.test(call.incoming.headers["content-type"] ?? "")) {
        const parts = await readParts(call.incoming, formLimits);
        const value = parts.find(({ name }) => name === "value");
        if (value === undefined)
          throw apiErrors.invalid("Expected a part value in the form, which is required", "/body/value");
        await kv.put(id, key, value.bytes, { ...options, metadata: metadataOf(parts) });
      } else {
        // When the request is refused midway, its body is drained: destroying it would close the connection
        // before the response.
        const body = call.incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>;
        await kv.put(id, key, body, options);
      }
      return null;
    },
  }),
  operation({
    id: "kv_value_delete",
    method: "DELETE",
    path: valuePath,
    summary: "Delete a key; succeeds when it does not exist",
    ...edit,
    result: z.null(),
    async handle(call) {
      const { id } = await namespaceOf(call);
      await call.services.kv.delete(id, [call.params["key_name"]!]);
      return null;
    },
  }),
  operation({
    id: "kv_metadata_get",
    method: "GET",
    path: `${namespacePath}/metadata/{key_name}`,
    summary: "Read the metadata of a key; null when it has none",
    ...read,
    result: z.unknown(),
    async handle(call) {
      const { id } = await namespaceOf(call);
      const entry = await call.services.kv.get(id, call.params["key_name"]!);
      if (entry === undefined) throw kvErrors.keyNotFound();
      if (!(entry.content instanceof Uint8Array)) entry.content.destroy();
      return entry.metadata ?? null;
    },
  }),
];

/** Metadata as JSON in a part, or as fields in bracket notation. */
function metadataOf(parts: readonly FormPart[]): unknown {
  const whole = parts.find(({ name }) => name === "metadata");
  if (whole === undefined) return nestedFields(parts, "metadata");
  return parseJson(whole.bytes.toString(), (why) =>
    apiErrors.invalid(`Expected JSON for metadata but ${why}`, "/body/metadata"),
  );
}

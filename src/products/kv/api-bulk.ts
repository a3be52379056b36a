import { z } from "zod";
import { readJson } from "../../control/api/body.ts";
import { operationsFor } from "../../control/api/operation.ts";
import { DomainError } from "../../platform/domain-error.ts";
import { Slices } from "../../platform/timers/slices.ts";
import { kvErrors } from "./errors.ts";
import { entryOf, type KvContent, type KvPut, type KvText, type KvNamespaces } from "./kv.ts";
import { edit, namespaceOf, namespacePath, read } from "./namespace-call.ts";
import { sensitive } from "../../control/api/sensitive.ts";

/** The services that these operations use. */
interface Services {
  kv: KvNamespaces;
}

const { operation } = operationsFor<Services>();

/** Bodies are arrays, sent with various content types. */
const own = { bodyKind: "own", acceptAnyContentType: true } as const;
const putBytesMax = 100 * 1024 * 1024;
const keysBytesMax = 16 * 1024 * 1024;
const pairsMax = 10_000;
const readMax = 100;
const readBytesMax = 25 * 1024 * 1024;

const KeysSchema = z.array(z.string()).max(pairsMax);
const PairsSchema = z
  .array(
    z.strictObject({
      key: z.string(),
      value: sensitive(z.string()),
      base64: z.boolean().optional(),
      expiration: z.number().optional(),
      expiration_ttl: z.number().optional(),
      metadata: z.unknown().optional(),
    }),
  )
  .max(pairsMax);
type Pair = z.output<typeof PairsSchema>[number];
const CountSchema = z.object({
  successful_key_count: z.int(),
  unsuccessful_keys: z.array(z.string()),
});
const counted = (count: number): z.input<typeof CountSchema> => ({
  successful_key_count: count,
  unsuccessful_keys: [],
});

export const bulkOperations = [
  operation({
    id: "kv_bulk_put",
    method: "PUT",
    path: `${namespacePath}/bulk`,
    summary: `Write up to ${pairsMax} values, or none of them`,
    ...edit,
    ...own,
    body: PairsSchema,
    result: CountSchema,
    async handle(call) {
      const { kv } = call.services;
      const { id } = await namespaceOf(call);
      const pairs = await readJson(call.incoming, PairsSchema, putBytesMax);
      const slices = new Slices();
      const options: KvPut[] = [];
      for (const [i, pair] of pairs.entries()) {
        options.push(readOptions(pair, i));
        await slices.rest();
      }
      const entries: { key: string; content: KvContent; options: KvPut }[] = [];
      try {
        for (const [i, pair] of pairs.entries()) {
          const content = await kv.receive(id, bytesOf(pair));
          entries.push({ key: pair.key, content, options: options[i]! });
          await slices.rest();
        }
      } catch (error) {
        await kv.discard(entries.map(({ content }) => content));
        throw error;
      }
      await kv.putReceived(id, entries);
      return counted(pairs.length);
    },
  }),
  ...(["POST", "DELETE"] as const).map((method) =>
    operation({
      id: method === "POST" ? "kv_bulk_delete" : "kv_bulk_delete_old",
      method,
      path: method === "POST" ? `${namespacePath}/bulk/delete` : `${namespacePath}/bulk`,
      summary: `Delete up to ${pairsMax} keys, ignoring those that do not exist`,
      ...edit,
      ...own,
      body: KeysSchema,
      result: CountSchema,
      async handle(call) {
        const { id } = await namespaceOf(call);
        const keys = await readJson(call.incoming, KeysSchema, keysBytesMax);
        await call.services.kv.delete(id, keys);
        return counted(keys.length);
      },
    }),
  ),
  operation({
    id: "kv_bulk_get",
    audit: "none",
    method: "POST",
    path: `${namespacePath}/bulk/get`,
    summary: `Read up to ${readMax} values as text or as JSON; null for keys that do not exist`,
    ...read,
    body: z.strictObject({
      keys: z.array(z.string()).min(1).max(readMax),
      type: z.enum(["text", "json"]).default("text"),
      withMetadata: z.boolean().default(false),
    }),
    result: z.object({ values: z.record(z.string(), z.unknown()) }),
    async handle(call) {
      const { keys, type, withMetadata } = call.body;
      const { id } = await namespaceOf(call);
      const entries = await call.services.kv.getMany(id, keys, readBytesMax);
      const shown = [...entries].map(([key, entry]) => [
        key,
        entry && shownValue(key, entry, type, withMetadata),
      ]);
      return { values: Object.fromEntries(shown) as Record<string, unknown> };
    },
  }),
];

function readOptions({ key, expiration, expiration_ttl: expirationTtl, metadata }: Pair, i: number): KvPut {
  const options = { expiration, expirationTtl, metadata };
  try {
    entryOf(key, options);
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    const message = `${error.message} (the key ${JSON.stringify(key.slice(0, 80))})`;
    throw new DomainError(error.kind, { message, pointer: `/body/${i}` });
  }
  return options;
}

function bytesOf({ key, value, base64 }: Pair): Uint8Array {
  if (base64 !== true) return Buffer.from(value);
  if (!/^[A-Za-z0-9+/\s]*(?:={1,2}\s*)?$/.test(value)) throw kvErrors.base64(key);
  return Buffer.from(value, "base64");
}

function shownValue(
  key: string,
  { text, metadata, expiration }: KvText,
  type: "text" | "json",
  withMetadata: boolean,
): unknown {
  const value = type === "json" ? parse(key, text) : text;
  if (!withMetadata) return value;
  return { value, metadata: metadata ?? null, ...(expiration === undefined ? {} : { expiration }) };
}

function parse(key: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw kvErrors.notJson(key);
  }
}

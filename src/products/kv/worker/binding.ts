import { kvLimits } from "../limits.ts";

/* The key-value namespace binding of a script. */
type BindingFetch = (path: string, init?: RequestInit) => Promise<Response>;

type ReadType = "text" | "json" | "arrayBuffer" | "stream";
interface ReadOptions {
  type?: ReadType;
  cacheTtl?: number;
}
type Put = string | ArrayBuffer | ArrayBufferView | ReadableStream;
interface PutOptions {
  expiration?: number | null;
  expirationTtl?: number | null;
  metadata?: unknown;
}
interface ListOptions {
  limit?: number | null;
  prefix?: string | null;
  cursor?: string | null;
}
interface Read {
  value: unknown;
  metadata: unknown;
}
/** A value in a response with several values. */
interface Sent {
  text: string;
  metadata: unknown;
}

const readTypes: readonly ReadType[] = ["text", "json", "arrayBuffer", "stream"];
const { keyBytesMax, listMax, metadataBytesMax } = kvLimits;
const keysMax = 100;
const cacheTtlSecondsMin = 30;
const utf8 = new TextEncoder();

export function kvNamespace(call: BindingFetch): object {
  return {
    async get(key: unknown, options?: unknown) {
      if (!Array.isArray(key)) return (await read(call, key, options)).value;
      const found = await readMany(call, key, options);
      return new Map([...found].map(([name, entry]) => [name, entry && entry.value]));
    },

    async getWithMetadata(key: unknown, options?: unknown) {
      if (!Array.isArray(key)) return { ...(await read(call, key, options)), cacheStatus: null };
      const found = await readMany(call, key, options);
      return new Map(
        [...found].map(([name, entry]) => [
          name,
          { value: null, metadata: null, ...entry, cacheStatus: null },
        ]),
      );
    },

    async put(key: unknown, value: unknown, options: PutOptions = {}) {
      const query = new URLSearchParams({ key: checkedKey(key, "PUT") });
      if (options.expirationTtl != null) query.set("expiration_ttl", String(options.expirationTtl));
      if (options.expiration != null) query.set("expiration", String(options.expiration));
      const headers: Record<string, string> = {};
      if (options.metadata != null) headers["x-kv-metadata"] = metadataText(options.metadata);
      await call(`/value?${query}`, { method: "PUT", headers, body: checkedValue(value) as BodyInit });
    },

    async delete(key: unknown) {
      await call(valuePath(checkedKey(key, "DELETE")), { method: "DELETE" });
    },

    async list(options: ListOptions = {}) {
      const response = await call(`/keys?${listQuery(options ?? {})}`);
      return { ...(await response.json<object>()), cacheStatus: null };
    },
  };
}

async function read(call: BindingFetch, key: unknown, given: unknown): Promise<Read> {
  const { type } = readOptions(given, readTypes);
  const response = await call(valuePath(checkedKey(key, "GET")));
  if (response.status === 404) return { value: null, metadata: null };
  const metadata = response.headers.get("x-kv-metadata");
  return {
    value: await valueOf(response, type),
    metadata: metadata === null ? null : JSON.parse(decodeURIComponent(metadata)),
  };
}

async function readMany(
  call: BindingFetch,
  keys: readonly unknown[],
  given: unknown,
): Promise<Map<string, Read | null>> {
  const { type } = readOptions(given, ["text", "json"]);
  if (keys.length > keysMax) throw failure("GET", 400, `You can request a maximum of ${keysMax} keys`);
  if (keys.length === 0) return new Map();
  const body = JSON.stringify({ keys: keys.map((key) => checkedKey(key, "GET")) });
  const response = await call("/values", { method: "POST", body });
  const sent: [key: string, value: Sent | null][] = await response.json();
  return new Map(
    sent.map(([key, entry]) => [
      key,
      entry && {
        value: type === "json" ? JSON.parse(entry.text) : entry.text,
        metadata: entry.metadata,
      },
    ]),
  );
}

function listQuery({ limit, prefix, cursor }: ListOptions): URLSearchParams {
  const query = new URLSearchParams();
  if (limit != null) {
    if (!Number.isInteger(limit) || limit < 1 || limit > listMax)
      throw failure(
        "GET",
        400,
        `Invalid key_count_limit of ${String(limit)}. Please specify an integer from 1 to ${listMax}.`,
      );
    query.set("limit", String(limit));
  }
  if (prefix != null) query.set("prefix", prefix);
  if (cursor != null) query.set("cursor", cursor);
  return query;
}

const valuePath = (key: string): string => `/value?key=${encodeURIComponent(key)}`;
const failure = (method: string, status: number, why: string): Error =>
  new Error(`KV ${method} failed: ${status} ${why}`);

function checkedKey(key: unknown, method: string): string {
  if (typeof key !== "string") throw new TypeError(`Expected a key as a string but received ${typeof key}`);
  const text = key.toWellFormed();
  if (text === "") throw new TypeError("Key name cannot be empty.");
  if (text === "." || text === "..") throw new TypeError(`"${text}" is not allowed as a key name.`);
  const { length } = utf8.encode(text);
  if (length > keyBytesMax)
    throw failure(
      method,
      414,
      `UTF-8 encoded length of ${length} exceeds key length limit of ${keyBytesMax}.`,
    );
  return text;
}

function readOptions(given: unknown, allowed: readonly ReadType[]): { type: ReadType } {
  const { type = "text", cacheTtl } = (
    typeof given === "string" ? { type: given } : (given ?? {})
  ) as ReadOptions;
  if (!allowed.includes(type))
    throw new TypeError(
      `Unknown response type "${type}". Possible types are ${allowed.map((each) => `"${each}"`).join(", ")}.`,
    );
  // Reads always return the last write, so the option is validated and has no effect.
  if (cacheTtl != null && !(cacheTtl >= cacheTtlSecondsMin))
    throw failure(
      "GET",
      400,
      `Invalid cache_ttl of ${cacheTtl}. Cache TTL must be at least ${cacheTtlSecondsMin}.`,
    );
  return { type };
}

async function valueOf(response: Response, type: ReadType): Promise<unknown> {
  switch (type) {
    case "text":
      return response.text();
    case "json":
      return response.json();
    case "arrayBuffer":
      return response.arrayBuffer();
    case "stream":
      return response.body ?? new Response("").body;
  }
}

function checkedValue(value: unknown): Put {
  const isTaken =
    typeof value === "string" ||
    value instanceof ArrayBuffer ||
    ArrayBuffer.isView(value) ||
    value instanceof ReadableStream;
  if (isTaken) return value as Put;
  throw new TypeError(
    "KV put() accepts only strings, ArrayBuffers, ArrayBufferViews, and ReadableStreams as values.",
  );
}

function metadataText(metadata: unknown): string {
  const text = JSON.stringify(metadata) as string | undefined;
  if (text === undefined)
    throw new TypeError(`Expected JSON-serializable metadata but received ${typeof metadata}`);
  const { length } = utf8.encode(text);
  if (length > metadataBytesMax)
    throw failure("PUT", 413, `Metadata length of ${length} exceeds limit of ${metadataBytesMax}.`);
  return encodeURIComponent(text.toWellFormed());
}

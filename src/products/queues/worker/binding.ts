/* The queue binding of a script. */
type BindingFetch = (path: string, init?: RequestInit) => Promise<Response>;

type ContentType = "text" | "bytes" | "json" | "v8";
interface Outgoing {
  body: unknown;
  contentType?: ContentType;
  delaySeconds?: number;
}
/** `bytes` in base64. */
interface Encoded {
  contentType: ContentType;
  body: string;
  delaySeconds?: number;
}

/** Before this compatibility date the default content type is `v8`. */
const flags = (globalThis as { Cloudflare?: { compatibilityFlags?: Record<string, boolean> } }).Cloudflare
  ?.compatibilityFlags;
const defaultType: ContentType = flags?.["queues_json_messages"] === false ? "v8" : "json";

export function queueBinding(call: BindingFetch): Queue {
  async function post(messages: Encoded[], delaySeconds: number | undefined): Promise<QueueSendResponse> {
    const response = await call("/messages", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ messages, ...(delaySeconds === undefined ? {} : { delaySeconds }) }),
    });
    return { metadata: { metrics: metricsOf(await response.json()) } };
  }
  return {
    async send(body: unknown, options: QueueSendOptions = {}) {
      const { contentType, delaySeconds } = options;
      return post([encode({ body, ...(contentType === undefined ? {} : { contentType }) })], delaySeconds);
    },
    async sendBatch(messages: Iterable<Outgoing>, options: QueueSendBatchOptions = {}) {
      return post(Array.from(messages, encode), options.delaySeconds);
    },
    async metrics() {
      const response = await call("/metrics");
      return metricsOf(await response.json());
    },
  };
}

interface WireMetrics {
  backlogCount: number;
  backlogBytes: number;
  oldestMessageTimestampMs: number;
}
const metricsOf = ({ oldestMessageTimestampMs, ...counts }: WireMetrics): QueueMetrics =>
  oldestMessageTimestampMs === 0
    ? counts
    : { ...counts, oldestMessageTimestamp: new Date(oldestMessageTimestampMs) };

function encode({ body, contentType = defaultType, delaySeconds }: Outgoing): Encoded {
  const rest = { contentType, ...(delaySeconds === undefined ? {} : { delaySeconds }) };
  switch (contentType) {
    case "text":
      if (typeof body !== "string")
        throw new TypeError(
          `Expected a string for a message of content type text but received ${kindOf(body)}`,
        );
      return { ...rest, body };
    case "bytes":
      return { ...rest, body: base64(bytesOf(body)) };
    case "json": {
      const text = JSON.stringify(body) as string | undefined;
      if (text === undefined)
        throw new TypeError(`Expected a JSON-serializable value but received ${kindOf(body)}`);
      return { ...rest, body: text };
    }
    case "v8":
      return { ...rest, body: encodeStructured(body) };
    default:
      throw new TypeError(
        `Expected one of text, bytes, json, v8 for contentType but received ${JSON.stringify(contentType)}`,
      );
  }
}

const kindOf = (value: unknown): string => (value === null ? "null" : typeof value);

function bytesOf(body: unknown): Uint8Array {
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  throw new TypeError(
    `Expected an ArrayBuffer or a view of one for a message of content type bytes but received ${kindOf(body)}`,
  );
}

function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192)
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}

/**
 * Encodes any structured-cloneable value as JSON: a list of nodes that refer to each other by index, so that
 * shared and circular references survive. The decoder is in batch.ts.
 */
function encodeStructured(value: unknown): string {
  const nodes: unknown[] = [];
  const indexes = new Map<unknown, number>();
  const indexOf = (each: unknown): number => {
    const known = indexes.get(each);
    if (known !== undefined) return known;
    const at = nodes.push(null) - 1;
    indexes.set(each, at);
    nodes[at] = nodeOf(each, indexOf);
    return at;
  };
  indexOf(structuredClone(value)); // throws the runtime's own error for values that cannot be cloned
  return JSON.stringify(nodes);
}

function nodeOf(value: unknown, indexOf: (each: unknown) => number): unknown[] {
  if (value === undefined) return ["undefined"];
  if (typeof value === "bigint") return ["bigint", value.toString()];
  if (typeof value === "number") {
    const isPlain = Number.isFinite(value) && !Object.is(value, -0);
    return isPlain ? ["value", value] : ["number", Object.is(value, -0) ? "-0" : String(value)];
  }
  if (value === null || typeof value !== "object") return ["value", value];
  if (Array.isArray(value)) return ["array", ...value.map(indexOf)];
  if (value instanceof Date) return ["date", indexOf(value.getTime())];
  if (value instanceof RegExp) return ["regexp", value.source, value.flags];
  if (value instanceof Map) return ["map", ...[...value].map(([key, each]) => [indexOf(key), indexOf(each)])];
  if (value instanceof Set) return ["set", ...[...value].map(indexOf)];
  if (value instanceof ArrayBuffer) return ["buffer", base64(new Uint8Array(value))];
  if (ArrayBuffer.isView(value))
    return ["view", value.constructor.name, indexOf(value.buffer), value.byteOffset, lengthOf(value)];
  if (value instanceof Error)
    return ["error", value.name, value.message, value.stack ?? "", indexOf(value.cause)];
  const primitive = value.valueOf();
  if (typeof primitive !== "object") return ["boxed", indexOf(primitive)];
  return ["object", ...Object.entries(value).map(([key, each]) => [key, indexOf(each)])];
}

const lengthOf = (view: ArrayBufferView): number =>
  view instanceof DataView ? view.byteLength : (view as Uint8Array).length;

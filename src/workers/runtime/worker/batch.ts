/* Runs a script's `queue` handler with a batch of messages, and reports which messages to acknowledge or retry. */

import { thrownText } from "../../../sandbox/worker/thrown.ts";

/** A message on the wire: `bytes` as base64, everything else as text. */
interface WireMessage {
  id: string;
  timestampMs: number;
  attempts: number;
  contentType: "text" | "bytes" | "json" | "v8";
  body: string;
}
export interface WireBatch {
  queue: string;
  metrics: { backlogCount: number; backlogBytes: number; oldestMessageTimestampMs: number };
  messages: WireMessage[];
}

/** The result of the batch for the dispatcher of queues. */
interface BatchResult {
  ackAll: boolean;
  retryBatch: { retry: boolean; delaySeconds?: number };
  explicitAcks: string[];
  retryMessages: { msgId: string; delaySeconds?: number }[];
}

interface QueueEvent {
  event: MessageBatch;
  outcome(): BatchResult;
  /** Decisions that a handler made before it failed count too. */
  failure(error: unknown): BatchResult & { error: { name: string; message: string; stack: string } };
}

/** Creates the batch for the handler. */
export function queueEvent(wire: WireBatch): QueueEvent {
  const result: BatchResult = {
    ackAll: false,
    retryBatch: { retry: false },
    explicitAcks: [],
    retryMessages: [],
  };
  const settled = new Set<string>();
  // The first decision on a message counts, and the first one on the batch.
  const isOpen = (id: string): boolean => !settled.has(id) && settled.add(id) !== undefined;
  const messages = wire.messages.map(({ id, timestampMs, attempts, contentType, body }): Message => {
    return {
      id,
      timestamp: new Date(timestampMs),
      attempts,
      body: decode(contentType, body),
      ack() {
        if (!result.ackAll && isOpen(id)) result.explicitAcks.push(id);
      },
      retry(options) {
        if (!result.ackAll && isOpen(id)) result.retryMessages.push({ msgId: id, ...delayOf(options) });
      },
    };
  });
  const { oldestMessageTimestampMs, ...counts } = wire.metrics;
  const batch: MessageBatch = {
    queue: wire.queue,
    messages,
    metadata: { metrics: { ...counts, oldestMessageTimestamp: new Date(oldestMessageTimestampMs) } },
    ackAll() {
      if (!result.retryBatch.retry) result.ackAll = true;
    },
    retryAll(options) {
      if (!result.ackAll) result.retryBatch = { retry: true, ...delayOf(options) };
    },
  };
  return {
    event: batch,
    outcome: () => result,
    failure(thrown) {
      return { ...result, error: thrownText(thrown) };
    },
  };
}

const delaySecondsMax = 24 * 60 * 60;

function delayOf(options: { delaySeconds?: number } | undefined): { delaySeconds?: number } {
  const delaySeconds = options?.delaySeconds;
  if (delaySeconds === undefined) return {};
  if (!Number.isInteger(delaySeconds) || delaySeconds < 0 || delaySeconds > delaySecondsMax)
    throw new TypeError(
      `Expected a whole number of seconds up to ${delaySecondsMax} for delaySeconds but received ${String(delaySeconds)}`,
    );
  return { delaySeconds };
}

function decode(contentType: WireMessage["contentType"], body: string): unknown {
  if (contentType === "text") return body;
  if (contentType === "json") return JSON.parse(body);
  if (contentType === "v8") return decodeStructured(body);
  return bytesOf(body);
}

const bytesOf = (base64: string): Uint8Array => Uint8Array.from(atob(base64), (each) => each.charCodeAt(0));

type TaggedValue = [kind: string, ...parts: unknown[]];
const views = {
  DataView,
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
};
const errors = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };

/** Decodes values that products/queues/worker/binding.ts encoded. */
function decodeStructured(text: string): unknown {
  const nodes = JSON.parse(text) as TaggedValue[];
  const made = new Map<number, unknown>();
  const at = (reference: unknown): unknown => {
    const index = reference as number;
    if (!made.has(index)) make(index, nodes[index]!);
    return made.get(index);
  };
  // Containers are created before their contents, because contents may refer back to them.
  function make(index: number, [kind, ...parts]: TaggedValue): void {
    const keep = <T>(value: T): T => {
      made.set(index, value);
      return value;
    };
    const pairs = parts as [unknown, unknown][];
    switch (kind) {
      case "array": {
        const array = keep<unknown[]>([]);
        for (const part of parts) array.push(at(part));
        return;
      }
      case "object": {
        const object = keep<Record<string, unknown>>({});
        for (const [key, part] of pairs)
          Object.defineProperty(object, key as string, {
            value: at(part),
            writable: true,
            enumerable: true,
            configurable: true,
          });
        return;
      }
      case "map": {
        const map = keep(new Map());
        for (const [key, part] of pairs) map.set(at(key), at(part));
        return;
      }
      case "set": {
        const set = keep(new Set());
        for (const part of parts) set.add(at(part));
        return;
      }
      case "error": {
        const [name, message, stack, cause] = parts as [string, string, string, number];
        const Type = errors[name as keyof typeof errors] ?? Error;
        const error = keep(new Type(message));
        error.stack = stack;
        const value = at(cause);
        if (value !== undefined)
          Object.defineProperty(error, "cause", { value, writable: true, configurable: true });
        return;
      }
      default:
        keep(plain(kind, parts, at));
    }
  }
  return at(0);
}

function plain(kind: string, parts: readonly unknown[], at: (reference: unknown) => unknown): unknown {
  const [first, second] = parts as [string, string];
  switch (kind) {
    case "undefined":
      return undefined;
    case "bigint":
      return BigInt(first);
    case "number":
      return Number(first);
    case "date":
      return new Date(at(first) as number);
    case "regexp":
      return new RegExp(first, second);
    case "buffer":
      return bytesOf(first).buffer;
    case "view": {
      const View = views[first as keyof typeof views] as new (...of: unknown[]) => unknown;
      return new View(at(second), parts[2], parts[3]);
    }
    case "boxed":
      return Object(at(first)) as unknown;
    default:
      return first; // a value that JSON has too
  }
}

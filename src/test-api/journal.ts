import { EventEmitter, once } from "node:events";

/** A call of the management API, as tests read it. Secrets are `REDACTED`. */
export interface RecordedCall {
  n: number;
  /** RFC 3339. */
  at: string;
  /** Null for a path without an operation. */
  operation: string | null;
  method: string;
  /** The canonical path, without the base. */
  path: string;
  query: Record<string, string>;
  headers: Record<string, string>;
  body: unknown;
  /** The id of the caller's token; null without a valid one. */
  token: string | null;
  status: number;
  response: unknown;
  ms: number;
  /** The id of the fault that answered or delayed the call. */
  fault?: string;
  /** The kinds and ids of its changes. */
  changed: readonly string[];
}

/** Conditions on calls. A call must meet all that are given. */
export interface CallConditions {
  operation?: string | undefined;
  method?: string | undefined;
  path?: string | undefined;
  token?: string | undefined;
  status?: number | undefined;
  /** Fields of the body, and their values. */
  body?: object | undefined;
  /** Only calls that changed something, or only those that changed nothing. */
  changed?: boolean | undefined;
  /** Only later calls than the one with this number. */
  after?: number | undefined;
}

const callsMax = 10_000;

/** The latest calls, oldest first. */
export class RecordedCalls {
  readonly #calls: RecordedCall[] = [];
  readonly #events = new EventEmitter<{ call: [RecordedCall] }>().setMaxListeners(0);
  #count = 0;

  /** Assigns the number of a new call. */
  next(): number {
    return ++this.#count;
  }

  add(call: RecordedCall): void {
    this.#calls.push(call);
    if (this.#calls.length > callsMax) this.#calls.shift();
    this.#events.emit("call", call);
  }

  all(filter: CallConditions): RecordedCall[] {
    return this.#calls.filter((call) => matches(call, filter)).toSorted((a, b) => a.n - b.n);
  }

  /** Calls whose path belongs to no operation. */
  unknown(): RecordedCall[] {
    return this.#calls.filter(({ operation }) => operation === null);
  }

  clear(): void {
    this.#calls.length = 0;
    this.#count = 0;
  }

  /** The calls that match. If there are none, waits for the first one, and returns none after `timeoutMs`. */
  async waitFor(filter: CallConditions, timeoutMs: number): Promise<RecordedCall[]> {
    const signal = AbortSignal.timeout(timeoutMs);
    for (;;) {
      const found = this.all(filter);
      if (found.length > 0) return found;
      try {
        await once(this.#events, "call", { signal });
      } catch {
        return [];
      }
    }
  }

  /** Calls `listener` with each later call. Returns a function that removes the listener. */
  follow(listener: (call: RecordedCall) => void): () => void {
    this.#events.on("call", listener);
    return () => this.#events.off("call", listener);
  }
}

function matches(call: RecordedCall, filter: CallConditions): boolean {
  const { operation, method, path, token, status, body, changed, after } = filter;
  return (
    (operation === undefined || call.operation === operation) &&
    (method === undefined || call.method === method.toUpperCase()) &&
    (path === undefined || call.path === path) &&
    (token === undefined || call.token === token) &&
    (status === undefined || call.status === status) &&
    (body === undefined || contains(call.body, body)) &&
    (changed === undefined || call.changed.length > 0 === changed) &&
    (after === undefined || call.n > after)
  );
}

/** Whether a value has all fields of another, with their values. */
export function contains(value: unknown, part: unknown): boolean {
  if (typeof part !== "object" || part === null) return Object.is(value, part);
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(part))
    return (
      Array.isArray(value) &&
      value.length === part.length &&
      part.every((each, index) => contains(value[index], each))
    );
  return Object.entries(part).every(([name, each]) =>
    contains((value as Record<string, unknown>)[name], each),
  );
}

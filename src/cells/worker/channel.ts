import { currentRun, fetchForRun, forRun, sendForRun } from "./run.ts";
import { socketPair } from "./web-socket-pair.ts";

/*
 * The snippet's end of its channel: one WebSocket to the front over which requests come, fetches go, and answers of both.
 * A request costs a message this way, not a connection into another isolate. Bodies go through the front only: a
 * fetched one is asked for when it is read, and one that is passed on unread never comes here. See ../channel.ts.
 */
type Message =
  | { type: "run"; run: string; method: string; url: string; headers: string[]; cf: unknown }
  | {
      type: "head";
      id: number;
      status: number;
      statusText: string;
      headers: string[];
      hasBody: boolean;
      /** It cannot be said in a message: it is to be fetched whole. */
      isNative: boolean;
    }
  | { type: "refused"; id: number; message: string };

interface Fetching {
  run: string;
  resolve(response: Response | Promise<Response>): void;
  reject(error: unknown): void;
}

/** The body of a fetched response, while nobody has read it. */
interface Unread {
  run: string;
  id: number;
  isRead: boolean;
}

const [NativeRequest, NativeResponse, NativeStream, NativeError] = [Request, Response, ReadableStream, Error];
const [startTimer, stopTimer] = [setTimeout, clearTimeout];
const { parse, stringify } = JSON;
const { apply } = Reflect;
const encode = TextEncoder.prototype.encode.bind(new TextEncoder());
const getter = (of: object, name: string): (() => unknown) => Object.getOwnPropertyDescriptor(of, name)!.get!;
const statusOf = getter(Response.prototype, "status");
const statusTextOf = getter(Response.prototype, "statusText");
const headersOf = getter(Response.prototype, "headers");
const requestHeadersOf = getter(Request.prototype, "headers");
const bodyOf = getter(Object.getPrototypeOf(Response.prototype) as object, "body");
const requestBodyOf = getter(Object.getPrototypeOf(Request.prototype) as object, "body");

const inlineBytesMax = 64 * 1024;
/** Time in which a body that has one part only says that it has ended. */
const endMsMax = 1;

/** By the lower part of their ids. What an outgrown Map keeps pointing to is costly to collect. */
const fetching: (Fetching | undefined)[] = [];
const slotsMax = 65_536;
let generation = 0;
const free: number[] = [];
const unread = new WeakMap<ReadableStream, Unread>();
/** Bodies that workerd reads by itself. */
const native = new WeakSet<ReadableStream>();
const incoming = new WeakSet<Headers>();
/** Responses whose body is compressed already, as the snippet says. */
const encoded = new WeakSet<Response>();
let channel = "";
let send: (message: string | ArrayBuffer) => void = () => {};

for (const name of ["append", "delete", "set"] as const) {
  const native = Headers.prototype[name] as (...args: string[]) => void;
  Object.defineProperty(Headers.prototype, name, {
    value(this: Headers, ...args: string[]) {
      if (incoming.has(this)) throw new TypeError("Can't modify immutable headers.");
      return apply(native, this, args);
    },
    writable: true,
    configurable: true,
    enumerable: true,
  });
}
const ConstructedResponse = new Proxy(NativeResponse, {
  construct(target, args: [unknown, ResponseInit?], newTarget) {
    const response = Reflect.construct(target, args, newTarget) as Response;
    if (args[1]?.encodeBody === "manual") encoded.add(response);
    return response;
  },
});
NativeResponse.prototype.constructor = ConstructedResponse;
globalThis.Response = ConstructedResponse;

globalThis.fetch = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
  const token = currentRun();
  if (token?.startsWith(channel) !== true || channel === "" || init?.signal != null)
    return fetchNatively(input, init);
  const request = new NativeRequest(input as RequestInfo, init);
  // A redirect is followed, and a body sent, by workerd itself.
  if (request.redirect !== "manual" || apply(requestBodyOf, request, []) !== null)
    return fetchNatively(request);
  const run = token.slice(channel.length);
  const slot = free.pop() ?? fetching.length;
  const id = ++generation * slotsMax + slot;
  const answered = new Promise<Response>((resolve, reject) => {
    fetching[slot] = { run, resolve, reject };
  });
  const headers = flat(apply(requestHeadersOf, request, []) as Headers);
  send(stringify({ type: "fetch", run, id, method: request.method, url: request.url, headers }));
  return answered;
};

async function fetchNatively(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const response = await fetchForRun(input, init);
  const body = apply(bodyOf, response, []) as ReadableStream | null;
  if (body !== null) native.add(body);
  return response;
}

/** Answers the request with which the front opens the channel. */
export function openChannel(token: string, handle: (request: Request) => Promise<Response>): Response {
  channel = `${token} `;
  const { theirs, sendOurs } = socketPair((data) => {
    for (const message of parse(data) as Message[]) {
      if (message.type === "run") void serve(message, handle);
      else settle(message);
    }
  });
  send = sendOurs;
  return new NativeResponse(null, { status: 101, webSocket: theirs });
}

async function serve(
  { run, method, url, headers, cf }: Message & { type: "run" },
  handle: (request: Request) => Promise<Response>,
): Promise<void> {
  try {
    const init = { method, headers: pairs(headers), redirect: "manual", cf } as RequestInit;
    const request = new NativeRequest(url, init);
    incoming.add(apply(requestHeadersOf, request, []) as Headers);
    await answer(run, method, await forRun(channel + run, () => handle(request)));
  } catch (error) {
    const { name, message, stack } = error instanceof NativeError ? error : new NativeError(String(error));
    send(stringify({ type: "threw", run, name, message, stack }));
  }
}

function settle(message: Message & { type: "head" | "refused" }): void {
  const { id } = message;
  const slot = id % slotsMax;
  const waiting = fetching[slot]!;
  fetching[slot] = undefined;
  free.push(slot);
  if (message.type === "refused") waiting.reject(new NativeError(message.message));
  else waiting.resolve(responseOf(waiting.run, message));
}

function responseOf(run: string, head: Message & { type: "head" }): Response | Promise<Response> {
  const { id, status, statusText, headers, hasBody, isNative } = head;
  if (isNative) return fetchBody(run, id);
  return new NativeResponse(hasBody ? lazyBody(run, id) : null, {
    status,
    statusText,
    headers: pairs(headers),
  });
}

/** A body that is asked for when the first byte of it is wanted. */
function lazyBody(run: string, id: number): ReadableStream {
  const state: Unread = { run, id, isRead: false };
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  const body = new NativeStream(
    {
      type: "bytes",
      async pull(controller) {
        state.isRead = true;
        reader ??= (await fetchBody(run, id)).body!.getReader();
        const { done, value } = await reader.read();
        if (!done) controller.enqueue(value);
        else {
          controller.close();
          controller.byobRequest?.respond(0);
        }
      },
      async cancel(reason) {
        state.isRead = true;
        await reader?.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  unread.set(body, state);
  return body;
}

const fetchBody = async (run: string, id: number): Promise<Response> =>
  forRun(channel + run, () =>
    sendForRun(new NativeRequest("http://front/"), [["x-selvedge-channel", `body ${id}`]]),
  );

async function answer(run: string, method: string, response: Response): Promise<void> {
  const headers = flat(apply(headersOf, response, []) as Headers);
  const head = {
    type: "answer",
    run,
    status: apply(statusOf, response, []) as number,
    statusText: apply(statusTextOf, response, []) as string,
    headers,
  };
  const body = apply(bodyOf, response, []) as ReadableStream<Uint8Array> | null;
  if (body === null || method === "HEAD") {
    send(stringify(head));
    return;
  }
  const origin = unread.get(body);
  if (origin !== undefined && origin.run === run && !origin.isRead && !body.locked) {
    send(stringify({ ...head, from: origin.id }));
    return;
  }
  // What was read here was decoded on the way.
  if (!encoded.has(response)) head.headers = withoutEncoding(headers);
  const length = Number(valueOf(head.headers, "content-length") ?? Number.NaN);
  if (length > inlineBytesMax && native.has(body)) await stream(run, head, body);
  else await answerInParts(run, head, body.getReader());
}

/** Sends a body with the head where it has ended, and is short; else as a stream. */
async function answerInParts(
  run: string,
  head: object,
  reader: ReadableStreamDefaultReader<Uint8Array>,
): Promise<void> {
  const parts: Uint8Array[] = [];
  let size = 0;
  // What the snippet does to make the body, it does for this run.
  const read = (): Promise<ReadableStreamReadResult<Uint8Array>> =>
    forRun(channel + run, () => reader.read());
  for (;;) {
    const next = read();
    const result = parts.length === 0 ? await next : await soon(next);
    if (result?.done === true) {
      send(join(encode(stringify(head)), parts, size));
      return;
    }
    if (result !== undefined) {
      parts.push(result.value);
      size += result.value.byteLength;
    }
    if (result === undefined || size > inlineBytesMax) {
      await stream(run, head, rest(parts, result === undefined ? next : undefined, read));
      return;
    }
  }
}

/** What a promise gives, if it gives it soon. */
async function soon<T>(promise: Promise<T>): Promise<T | undefined> {
  let timer: number | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = startTimer(resolve, endMsMax, undefined);
  });
  const result = await Promise.race([promise, late]);
  stopTimer(timer!);
  return result;
}

/** A stream of what was read of another, and of what is left. */
function rest(
  parts: Uint8Array[],
  pending: Promise<ReadableStreamReadResult<Uint8Array>> | undefined,
  read: () => Promise<ReadableStreamReadResult<Uint8Array>>,
): ReadableStream<Uint8Array> {
  return new NativeStream<Uint8Array>({
    async pull(controller) {
      const part = parts.shift();
      if (part !== undefined) {
        controller.enqueue(part);
        return;
      }
      const next = pending ?? read();
      pending = undefined;
      const { done, value } = await next;
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
}

async function stream(run: string, head: object, body: ReadableStream): Promise<void> {
  const request = new NativeRequest("http://front/", { method: "POST", body });
  await forRun(channel + run, () =>
    sendForRun(request, [["x-selvedge-channel", `answer ${encodeURIComponent(stringify(head))}`]]),
  );
}

/** The length of the head in four bytes, the head, the body. */
function join(head: Uint8Array, parts: readonly Uint8Array[], size: number): ArrayBuffer {
  const message = new Uint8Array(4 + head.byteLength + size);
  new DataView(message.buffer).setUint32(0, head.byteLength);
  message.set(head, 4);
  let at = 4 + head.byteLength;
  for (const part of parts) {
    message.set(part, at);
    at += part.byteLength;
  }
  return message.buffer;
}

function flat(headers: Headers): string[] {
  const list: string[] = [];
  for (const [name, value] of headers) list.push(name, value);
  return list;
}

function pairs(list: readonly string[]): [string, string][] {
  const result: [string, string][] = [];
  for (let i = 0; i < list.length; i += 2) result.push([list[i]!, list[i + 1]!]);
  return result;
}

function valueOf(list: readonly string[], name: string): string | undefined {
  const at = list.findIndex((each, i) => i % 2 === 0 && each === name);
  return at < 0 ? undefined : list[at + 1];
}

function withoutEncoding(list: string[]): string[] {
  if (valueOf(list, "content-encoding") === undefined) return list;
  return list.filter((_, i) => !["content-encoding", "content-length"].includes(list[i & ~1]!));
}

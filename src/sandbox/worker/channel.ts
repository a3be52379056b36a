import { currentRun, fetchForRun, forRun, sendForRun } from "./run.ts";
import { thrownText } from "./thrown.ts";
import { socketPair } from "./web-socket-pair.ts";
import { cellHeaders } from "../protocol.ts";

/*
 * The snippet's end of its channel: a multiplexed stream (one WebSocket to the gateway) that carries requests
 * and heads of fetched responses in, and fetches, answers and exceptions out. A message costs less than a
 * connection into another isolate. Bodies go over HTTP: a fetched body is requested when it is read, and a
 * body that is returned unread never reaches the isolate. See ../gateway/channel.ts for the other end.
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
      /** The response cannot be expressed as a message, and must be fetched over HTTP. */
      isNative: boolean;
    }
  | { type: "refused"; id: number; message: string };

interface Fetching {
  run: string;
  resolve(response: Response | Promise<Response>): void;
  reject(error: unknown): void;
}

/** The body of a fetched response before it is read. */
interface Unread {
  run: string;
  id: number;
  isRead: boolean;
}

const [NativeRequest, NativeResponse, NativeStream, NativeError] = [Request, Response, ReadableStream, Error];
const [startTimer, stopTimer] = [setTimeout, clearTimeout];
const { parse, stringify } = JSON;
const { apply } = Reflect;
const encodeUri = encodeURIComponent;
const encode = TextEncoder.prototype.encode.bind(new TextEncoder());
const getter = (of: object, name: string): (() => unknown) => Object.getOwnPropertyDescriptor(of, name)!.get!;
const statusOf = getter(Response.prototype, "status");
const statusTextOf = getter(Response.prototype, "statusText");
const headersOf = getter(Response.prototype, "headers");
const requestHeadersOf = getter(Request.prototype, "headers");
const bodyOf = getter(Object.getPrototypeOf(Response.prototype) as object, "body");
const requestBodyOf = getter(Object.getPrototypeOf(Request.prototype) as object, "body");

const inlineBytesMax = 64 * 1024;
/** Maximum length of a head: as JSON in a message, and percent-encoded in a header. */
const headLengthMax = 128 * 1024;
const headerLengthMax = 96 * 1024;
/** Time to wait for the end of a body after its first chunk, before it is sent as a stream. */
const endMsMax = 1;

/** Indexed by the lower part of the id. Not a Map, because outgrown tables of a Map are costly to collect. */
const fetching: (Fetching | undefined)[] = [];
const slotsMax = 65_536;
let generation = 0;
const free: number[] = [];
const unread = new WeakMap<ReadableStream, Unread>();
/** Bodies that workerd produces natively. */
const native = new WeakSet<ReadableStream>();
const incoming = new WeakSet<Headers>();
/** Responses that the snippet has created with an encoded body (`encodeBody: "manual"`). */
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
  if (token?.startsWith(channel) !== true || channel === "" || init?.signal != null || init?.cf != null)
    return fetchNatively(input, init);
  const request = new NativeRequest(input as RequestInfo, init);
  // workerd itself follows redirects and sends bodies.
  if (request.redirect !== "manual" || apply(requestBodyOf, request, []) !== null)
    return fetchNatively(request);
  const run = token.slice(channel.length);
  const headers = flat(apply(requestHeadersOf, request, []) as Headers);
  const slot = free.pop() ?? fetching.length;
  const id = ++generation * slotsMax + slot;
  const answered = new Promise<Response>((resolve, reject) => {
    fetching[slot] = { run, resolve, reject };
  });
  try {
    send(headText({ type: "fetch", run, id, method: request.method, url: request.url, headers }));
  } catch (error) {
    settle({ type: "refused", id, message: thrownText(error).message });
  }
  return answered;
};

async function fetchNatively(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const response = await fetchForRun(input, init);
  const body = apply(bodyOf, response, []) as ReadableStream | null;
  if (body !== null) native.add(body);
  return response;
}

/** Answers the gateway's upgrade request for the channel. */
export function openChannel(token: string, handle: (request: Request) => Promise<Response>): Response {
  channel = `${token} `;
  const { theirs, sendOurs } = socketPair((data) => {
    for (const message of parse(data) as Message[]) {
      if (message.type === "run") serve(message, handle).catch(() => {});
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
    send(stringify({ type: "threw", run, ...thrownText(error) }));
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

/** A body that is requested when its first byte is read. */
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
    sendForRun(new NativeRequest("http://gateway/"), [[cellHeaders.channel, `body ${id}`]]),
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
    send(headText(head));
    return;
  }
  const origin = unread.get(body);
  if (origin !== undefined && origin.run === run && !origin.isRead && !body.locked) {
    send(headText({ ...head, from: origin.id }));
    return;
  }
  // A body that was read here has been decoded.
  if (!encoded.has(response)) head.headers = withoutEncoding(headers);
  const length = Number(valueOf(head.headers, "content-length") ?? Number.NaN);
  if (length > inlineBytesMax && native.has(body)) await stream(run, head, body);
  else await answerInParts(run, head, body.getReader());
}

/** Sends a short body together with the head if it ends soon, otherwise as a stream. */
async function answerInParts(
  run: string,
  head: object,
  reader: ReadableStreamDefaultReader<Uint8Array>,
): Promise<void> {
  const parts: Uint8Array[] = [];
  let size = 0;
  // The snippet's own streams run within this run.
  const read = (): Promise<ReadableStreamReadResult<Uint8Array>> =>
    forRun(channel + run, () => reader.read());
  for (;;) {
    const next = read();
    const result = parts.length === 0 ? await next : await soon(next);
    if (result?.done === true) {
      send(join(encode(headText(head)), parts, size));
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

/** The result of a promise if it settles within `endMsMax`, else undefined. */
async function soon<T>(promise: Promise<T>): Promise<T | undefined> {
  let timer: number | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = startTimer(resolve, endMsMax, undefined);
  });
  const result = await Promise.race([promise, late]);
  stopTimer(timer!);
  return result;
}

/** A stream of the chunks read so far and of the rest. */
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
  const request = new NativeRequest("http://gateway/", { method: "POST", body });
  const value = `answer ${encodeUri(stringify(head))}`;
  if (value.length > headerLengthMax)
    throw new NativeError(`The headers have more than ${headerLengthMax / 1024} KiB.`);
  await forRun(channel + run, () => sendForRun(request, [[cellHeaders.channel, value]]));
}

/** Throws if the head is too long. The gateway would close the whole channel, but this fails only one request. */
function headText(head: object): string {
  const text = stringify(head);
  if (text.length > headLengthMax)
    throw new NativeError(`The headers have more than ${headLengthMax / 1024} KiB.`);
  return text;
}

/** Four bytes with the length of the head, then the head and the body. */
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

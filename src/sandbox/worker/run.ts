import { AsyncLocalStorage } from "node:async_hooks";
import { abortIsolate, WorkerEntrypoint } from "cloudflare:workers";
import { collectEarly } from "../limits/worker/collect-early.ts";
import { amongCalls, amongRequests, endRuns } from "./concurrency.ts";
import { dropHosts, KeptHosts } from "../objects/worker/kept-hosts.ts";
import { thrownText } from "./thrown.ts";
import {
  cellHeaders,
  withMetadata,
  wrapperHeaders,
  type AlarmNotice,
  type BookmarkOrder,
  type DispatchMetadata,
  type ObjectFetchMetadata,
  type RunMetadata,
} from "../protocol.ts";

/*
 * The base of every wrapped script: tracks the run that code belongs to, and adds it to each `fetch`. Native
 * functions are saved before the script's code is loaded, because a script may replace them.
 */
const nativeFetch = globalThis.fetch;
const NativeRequest = globalThis.Request;
const NativeError = globalThis.Error;
const { apply } = Reflect;
const setHeader = Headers.prototype.set;
const deleteHeader = Headers.prototype.delete;
const { stringify, parse } = JSON;
const { freeze, isFrozen, values } = Object;
const { split } = String.prototype;
const [encode, decode] = [encodeURIComponent, decodeURIComponent];
const getHeader = Headers.prototype.get;
const requestHeaders = Object.getOwnPropertyDescriptor(Request.prototype, "headers")!.get!;
const requestCf = Object.getOwnPropertyDescriptor(Request.prototype, "cf")!.get!;
const responseStatus = Object.getOwnPropertyDescriptor(Response.prototype, "status")!.get!;
/** The gateway refuses with 403 or 500 (gateway/error-headers.ts). */
const refusalsFrom = 400;
const responseHeaders = Object.getOwnPropertyDescriptor(Response.prototype, "headers")!.get!;

/** The run that code belongs to. */
interface Current {
  token: string;
  /** The object of the run, or made when the run calls objects. */
  hosts: KeptHosts | undefined;
}
const runs = new AsyncLocalStorage<Current>();
const runWith = runs.run.bind(runs);
const current = runs.getStore.bind(runs);
const currentRun = (): string | undefined => current()?.token;

let observer: ((token: string) => void) | undefined;

/** For the test kit: sees the token of each run that begins. */
export const observeRuns = (see: (token: string) => void): void => {
  observer = see;
};

/** Runs a handler within the run of this token. `hosts` are those that the object of the run keeps. */
export function forRun<T>(token: string, handle: () => T, hosts?: KeptHosts): T {
  if (observer !== undefined) observer(token);
  collectEarly();
  return runWith({ token, hosts }, handle) as T;
}
export { currentRun };

/** The hosts that are kept where this code runs; undefined where calls of objects leave the process. */
export function keptHosts(): KeptHosts | undefined {
  const at = current();
  return at === undefined || !isNearObjects ? undefined : (at.hosts ??= new KeptHosts());
}

/** The platform metadata of a request. */
export const metadataOf = (request: Request): RunMetadata => apply(requestCf, request, []) as RunMetadata;

const { get: getShown, set: setShown } = WeakMap.prototype;
const shown = new WeakMap<object, unknown>();

Object.defineProperty(Request.prototype, "cf", {
  /** Parsed on first access. A copy of a request has a copy of its own, which the script may change. */
  get(this: Request): unknown {
    const metadata = metadataOf(this);
    if (metadata?.selvedgeRun === undefined || metadata.visitor === undefined)
      return metadata?.selvedgeRun === undefined ? metadata : undefined;
    let visitor = apply(getShown, shown, [metadata]) as Record<string, unknown> | undefined;
    if (visitor === undefined) {
      visitor = parse(metadata.visitor) as Record<string, unknown>;
      // workerd adds it for scripts with early compatibility dates.
      const { botManagement } = metadata as { botManagement?: unknown };
      if (botManagement !== undefined) visitor["botManagement"] ??= botManagement;
      if (isFrozen(metadata)) freezeAll(visitor);
      apply(setShown, shown, [metadata, visitor]);
    }
    return visitor;
  },
  configurable: true,
  enumerable: true,
});

function freezeAll(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  freeze(value);
  for (const each of values(value)) freezeAll(each);
}

/** Sends a request to the gateway for the current run. Throws the gateway's refusal as an error. */
export async function sendForRun(
  request: Request,
  internal: readonly (readonly [string, string])[],
): Promise<Response> {
  const token = neededRun();
  const headers = apply(requestHeaders, request, []);
  // No iterables here: a script may have replaced their methods.
  for (let i = 0; i < wrapperHeaders.length; i++) apply(deleteHeader, headers, [wrapperHeaders[i]]);
  apply(setHeader, headers, [cellHeaders.run, token]);
  for (let i = 0; i < internal.length; i++) apply(setHeader, headers, internal[i] as [string, string]);
  return answerOf(await apply(nativeFetch, globalThis, [request]));
}

/** Throws the gateway's refusal as an error. An object for headers is costly, so they are read only after a status of refusals. */
function answerOf(response: Response): Response {
  if (apply(responseStatus, response, []) < refusalsFrom) return response;
  const answered = apply(responseHeaders, response, []);
  const refusal = apply(getHeader, answered, [cellHeaders.error]) as string | null;
  if (refusal === null) return response;
  const error = new NativeError(decode(refusal)) as Error & { code?: number };
  const name = apply(getHeader, answered, [cellHeaders.errorName]) as string | null;
  const code = apply(getHeader, answered, [cellHeaders.errorCode]) as string | null;
  if (name !== null) error.name = decode(name);
  if (code !== null) error.code = Number(code);
  const flags = apply(getHeader, answered, [cellHeaders.errorFlags]) as string | null;
  if (flags !== null) setFlags(error, flags);
  throw error;
}

/** Sets the properties by which callers of Durable Objects decide about retries. */
function setFlags(error: object, flags: string): void {
  const names = apply(split, flags, [","]) as string[];
  for (let i = 0; i < names.length; i++) (error as Record<string, boolean>)[names[i]!] = true;
}

/** The token of the run that this code belongs to. Throws outside of a request. */
export function neededRun(): string {
  const token = currentRun();
  if (token === undefined) throw new NativeError("This works only while handling a request.");
  return token;
}

export async function fetchForRun(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const request = new NativeRequest(input as RequestInfo, init);
  const image = imageOf(init?.cf ?? (typeof input === "string" ? undefined : metadataOf(request)));
  return amongRequests(neededRun(), () =>
    sendForRun(request, image === undefined ? [] : [[cellHeaders.image, encode(image)]]),
  );
}

const imageLengthMax = 8192;

/** JSON of the options for image transformation; undefined for any other fetch. */
function imageOf(cf: object | null | undefined): string | undefined {
  const image = (cf as { image?: unknown } | null | undefined)?.image;
  if (image === undefined) return undefined;
  const text = stringify(image);
  if (text.length > imageLengthMax)
    throw new TypeError(`Expected at most ${imageLengthMax} characters of options for cf.image`);
  return text;
}

/** Fetches through a binding. */
export async function fetchThrough(
  binding: string,
  input: RequestInfo | URL,
  init?: RequestInit,
): Promise<Response> {
  const request = new NativeRequest(input as RequestInfo, init);
  return amongRequests(neededRun(), () => sendForRun(request, [[cellHeaders.binding, encode(binding)]]));
}

/** Fetches another script of the account. */
export async function fetchService(
  binding: string,
  input: RequestInfo | URL,
  init?: RequestInit,
): Promise<Response> {
  const request = new NativeRequest(input as RequestInfo, init);
  return amongCalls(neededRun(), () => sendForRun(request, [[cellHeaders.binding, encode(binding)]]));
}

/** Whether this isolate is in a cell of objects: its calls may then stay in the process. */
let isNearObjects = false;

/** Notes that this isolate runs an object, or a script in the cell of its objects. */
export const noteNearObjects = (): void => {
  isNearObjects = true;
};

type Send = (request: RequestInfo | URL, init: RequestInit) => Promise<Response>;

/** The way to a Durable Object. */
interface ObjectWay {
  /** Sends to the system worker, or to the object's host. */
  send: Send;
  failed(error: unknown): void;
}

/** Fetches a Durable Object. */
export async function fetchObject(
  way: ObjectWay,
  { binding, reference }: Omit<ObjectFetchMetadata, "selvedgeRun">,
  input: RequestInfo | URL,
  init?: RequestInit,
): Promise<Response> {
  const selvedgeRun = neededRun();
  const isPlain = init === undefined && typeof input === "string";
  const request = isPlain ? input : new NativeRequest(input as RequestInfo, init);
  // The gateway joins WebSockets, since it watches their messages.
  if (isNearObjects && (isPlain || !isUpgrade(request as Request)))
    return amongCalls(selvedgeRun, () => sendNear(way, request, { selvedgeRun, binding, reference }));
  return amongCalls(selvedgeRun, () =>
    sendForRun(isPlain ? new NativeRequest(input) : (request as Request), [
      [cellHeaders.binding, encode(binding)],
      [cellHeaders.object, encode(reference)],
    ]),
  );
}

/** Gives an exception of the object the same form as from other cells: a name and a message. */
async function sendNear(
  way: ObjectWay,
  request: RequestInfo | URL,
  metadata: ObjectFetchMetadata,
): Promise<Response> {
  let response: Response;
  try {
    response = await way.send(request, withMetadata(metadata));
  } catch (thrown) {
    way.failed(thrown);
    const { name, message } = thrownText(thrown);
    const error = new NativeError(message) as Error & Record<string, unknown>;
    error.name = name;
    const { retryable, overloaded } = thrown as Record<string, unknown>;
    if (retryable === true) error["retryable"] = true;
    if (overloaded === true) error["overloaded"] = true;
    throw error;
  }
  return answerOf(response);
}

const isUpgrade = (request: Request): boolean =>
  apply(getHeader, apply(requestHeaders, request, []), ["upgrade"]) !== null;

/** Fetches a customer's script. `send` sends to the system worker. */
export async function fetchDispatched(
  send: Send,
  binding: string,
  input: RequestInfo | URL,
  init: RequestInit | undefined,
  options: object,
  outbound: object | undefined,
): Promise<Response> {
  const metadata: DispatchMetadata = {
    selvedgeRun: neededRun(),
    binding,
    options: stringify(options),
    outbound: outbound === undefined ? "" : stringify(outbound),
  };
  const request = init === undefined ? input : new NativeRequest(input as RequestInfo, init);
  return send(request, withMetadata(metadata));
}

/** Sends an event about the current run to the gateway. Resolves with the status of the answer. */
export async function notifyGateway(what: string, body: string): Promise<number> {
  const request = new NativeRequest("http://gateway/", { method: "POST", body });
  const response = await sendForRun(request, [[cellHeaders.event, what]]);
  return apply(responseStatus, response, []) as number;
}

/** Sends the gateway the alarm of the object that this run belongs to. Rejects if the alarm cannot be stored. */
export async function sendAlarm(notice: AlarmNotice): Promise<void> {
  await sendForRun(new NativeRequest("http://gateway/"), [[cellHeaders.alarm, encode(stringify(notice))]]);
}

const responseText = Response.prototype.text;

/** Asks for a bookmark of the object that this run belongs to. Rejects with the gateway's refusal. */
export async function askBookmark(order: BookmarkOrder): Promise<string> {
  const header = [cellHeaders.bookmark, encode(stringify(order))] as const;
  const response = await sendForRun(new NativeRequest("http://gateway/"), [header]);
  return apply(responseText, response, []) as Promise<string>;
}

/** Reports the stack of an exception: the error loses its stack when it leaves the isolate. */
export async function reportThrown(error: unknown): Promise<void> {
  const { stack } = thrownText(error);
  if (stack === "") return;
  try {
    await notifyGateway("thrown", stack);
  } catch {
    // The exception itself is reported without the stack.
  }
}

/** Sends an order about a TCP socket for the current run; see workers/runtime/sockets/socket-orders.ts. */
export async function orderSocket(order: object, body: Uint8Array | null): Promise<Response> {
  const request = new NativeRequest("http://gateway/", { method: "POST", body });
  return sendForRun(request, [[cellHeaders.socket, encode(stringify(order))]]);
}

/** Sends the visitor's request to the origin after the script failed (passThroughOnException). */
export const passOn = async (request: Request): Promise<Response> =>
  sendForRun(new NativeRequest(request), [[cellHeaders.pass, "1"]]);

Object.defineProperty(globalThis, "fetch", {
  value: fetchForRun,
  writable: true,
  configurable: true,
  enumerable: true,
});

/** For the system worker only: loads the script before its first request, carries out its orders, and unloads it. */
export class Control extends WorkerEntrypoint {
  override fetch(request: Request): Response {
    const { left, dropsHosts } = (metadataOf(request) as RunMetadata | undefined) ?? {};
    if (left !== undefined) endRuns(left);
    if (dropsHosts === true) dropHosts();
    if (request.url.endsWith("/unload")) abortIsolate("unloaded");
    return new Response(null, { status: 204 });
  }
}
freeze(Control.prototype);
freeze(Control);

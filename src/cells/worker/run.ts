import { AsyncLocalStorage } from "node:async_hooks";
import { abortIsolate, WorkerEntrypoint } from "cloudflare:workers";
import { collectEarly } from "./collect-early.ts";
import { internalNames, withSaid, type Said, type SaidOfDispatch } from "./said.ts";

/*
 * What every wrapped script has under it: the request that a piece of code runs for, and a `fetch` that says so to the
 * front. Natives are taken before the script's code is loaded, which may replace whatever it can reach.
 */
const nativeFetch = globalThis.fetch;
const NativeRequest = globalThis.Request;
const NativeError = globalThis.Error;
const { apply } = Reflect;
const setHeader = Headers.prototype.set;
const deleteHeader = Headers.prototype.delete;
const { stringify, parse } = JSON;
const { freeze, isFrozen, values } = Object;
const [encode, decode] = [encodeURIComponent, decodeURIComponent];
const getHeader = Headers.prototype.get;
const requestHeaders = Object.getOwnPropertyDescriptor(Request.prototype, "headers")!.get!;
const requestCf = Object.getOwnPropertyDescriptor(Request.prototype, "cf")!.get!;
const responseHeaders = Object.getOwnPropertyDescriptor(Response.prototype, "headers")!.get!;

const runs = new AsyncLocalStorage<string>();
const runWith = runs.run.bind(runs);
const currentRun = runs.getStore.bind(runs);

/** Runs a handler for the request whose token this is. */
export function forRun<T>(token: string, handle: () => T): T {
  collectEarly();
  return runWith(token, handle) as T;
}
export { currentRun };

/** What has come with a request. */
export const saidWith = (request: Request): Said => apply(requestCf, request, []) as Said;

const { get: getShown, set: setShown } = WeakMap.prototype;
const shown = new WeakMap<object, unknown>();

Object.defineProperty(Request.prototype, "cf", {
  /** What is known of the visitor, read when it is first asked for. Copies of a request have their own, which can be changed. */
  get(this: Request): unknown {
    const said = saidWith(this);
    if (said?.selvedgeRun === undefined || said.visitor === undefined)
      return said?.selvedgeRun === undefined ? said : undefined;
    let visitor = apply(getShown, shown, [said]) as Record<string, unknown> | undefined;
    if (visitor === undefined) {
      visitor = parse(said.visitor) as Record<string, unknown>;
      // Which workerd adds for scripts of early dates.
      const { botManagement } = said as { botManagement?: unknown };
      if (botManagement !== undefined) visitor["botManagement"] ??= botManagement;
      if (isFrozen(said)) freezeAll(visitor);
      apply(setShown, shown, [said, visitor]);
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

/** Sends a request to the front, for the current run. What the front refuses is thrown. */
export async function sendForRun(
  request: Request,
  internal: readonly (readonly [string, string])[],
): Promise<Response> {
  const token = neededRun();
  const headers = apply(requestHeaders, request, []);
  for (const name of internalNames) apply(deleteHeader, headers, [name]);
  apply(setHeader, headers, ["x-selvedge-run", token]);
  for (const [name, value] of internal) apply(setHeader, headers, [name, value]);
  const response = await apply(nativeFetch, globalThis, [request]);
  const answered = apply(responseHeaders, response, []);
  const refusal = apply(getHeader, answered, ["x-selvedge-error"]) as string | null;
  if (refusal === null) return response;
  const error = new NativeError(decode(refusal)) as Error & { code?: number };
  const name = apply(getHeader, answered, ["x-selvedge-error-name"]) as string | null;
  const code = apply(getHeader, answered, ["x-selvedge-error-code"]) as string | null;
  if (name !== null) error.name = name;
  if (code !== null) error.code = Number(code);
  throw error;
}

function neededRun(): string {
  const token = currentRun();
  if (token === undefined) throw new NativeError("This works only while a request is handled.");
  return token;
}

export async function fetchForRun(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  return sendForRun(new NativeRequest(input as RequestInfo, init), []);
}

/** A request to where a binding leads. */
export async function fetchThrough(
  binding: string,
  input: RequestInfo | URL,
  init?: RequestInit,
): Promise<Response> {
  return sendForRun(new NativeRequest(input as RequestInfo, init), [["x-selvedge-binding", encode(binding)]]);
}

/** A request to a customer's script, by way of the system worker. */
export async function fetchDispatched(
  stub: Fetcher,
  binding: string,
  input: RequestInfo | URL,
  init: RequestInit | undefined,
  said: object,
  outbound: object | undefined,
): Promise<Response> {
  const all: SaidOfDispatch = {
    selvedgeRun: neededRun(),
    binding,
    said: stringify(said),
    outbound: outbound === undefined ? "" : stringify(outbound),
  };
  const request = init === undefined ? input : new NativeRequest(input as RequestInfo, init);
  return stub.fetch(request as RequestInfo, withSaid(all));
}

/** Tells the front something of the current run. */
export async function tellFront(what: string, body: string): Promise<void> {
  const request = new NativeRequest("http://front/", { method: "POST", body });
  await sendForRun(request, [["x-selvedge-event", what]]);
}

/** Sends a visitor's request on to the origin, for a script that has failed. */
export const passOn = async (request: Request): Promise<Response> =>
  sendForRun(new NativeRequest(request), [["x-selvedge-pass", "1"]]);

Object.defineProperty(globalThis, "fetch", {
  value: fetchForRun,
  writable: true,
  configurable: true,
  enumerable: true,
});

/** For the system worker only: it loads the script ahead of its first request, and unloads it. */
export class Control extends WorkerEntrypoint {
  override fetch(request: Request): Response {
    if (request.url.endsWith("/unload")) abortIsolate("unloaded");
    return new Response(null, { status: 204 });
  }
}

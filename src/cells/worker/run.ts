import { AsyncLocalStorage } from "node:async_hooks";
import { abortIsolate, WorkerEntrypoint } from "cloudflare:workers";

/*
 * What every wrapped script has under it: the request that a piece of code runs for, and a `fetch` that says so to the
 * front. Natives are taken before the script's code is loaded, which may replace whatever it can reach.
 */
const nativeFetch = globalThis.fetch;
const NativeRequest = globalThis.Request;
const NativeError = globalThis.Error;
const { apply } = Reflect;
const setHeader = Headers.prototype.set;
const getHeader = Headers.prototype.get;
const requestHeaders = Object.getOwnPropertyDescriptor(Request.prototype, "headers")!.get!;
const responseHeaders = Object.getOwnPropertyDescriptor(Response.prototype, "headers")!.get!;

const runs = new AsyncLocalStorage<string>();
const runWith = runs.run.bind(runs);
const currentRun = runs.getStore.bind(runs);

/** Runs a handler for the request whose token this is. */
export const forRun = <T>(token: string, handle: () => T): T => runWith(token, handle) as T;
export { currentRun };

async function fetchForRun(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const token = currentRun();
  if (token === undefined) throw new NativeError("fetch() works only while a request is handled.");
  const request = new NativeRequest(input as RequestInfo, init);
  apply(setHeader, apply(requestHeaders, request, []), ["x-selvedge-run", token]);
  const response = await apply(nativeFetch, globalThis, [request]);
  const refusal = apply(getHeader, apply(responseHeaders, response, []), ["x-selvedge-error"]) as
    | string
    | null;
  if (refusal !== null) throw new NativeError(refusal);
  return response;
}

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

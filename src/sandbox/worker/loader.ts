/* Loads scripts into the cell on demand, and unloads the least recently used ones. */
import { exports, waitUntil } from "cloudflare:workers";
import { cellHeaders } from "../protocol.ts";

export interface SystemEnv {
  LOADER: WorkerLoader;
  GATEWAY: Fetcher;
  SECRET: string;
  /** workerd's own client of D1. */
  D1: unknown;
  SCRIPTS_MAX: string;
  /** Maximum numbers of concurrent calls between scripts in this cell, for all accounts and for one. */
  CALLS_MAX: string;
  ACCOUNT_CALLS_MAX: string;
}

export interface Loadable {
  mainModule: string;
  modules: Record<string, Record<string, string | null> & { base64?: string }>;
  compatibilityDate: string;
  compatibilityFlags: string[];
  env: Record<string, unknown>;
  /** Bindings that call an entrypoint of the system worker. */
  systemEntrypoints: [name: string, entrypoint: "D1" | "Dispatch" | "Objects" | "Service"][];
  /** Whether other scripts dispatch to it. Its fetches then go through this worker, which adds the dispatched run. */
  isDispatched: boolean;
}

/** The system worker's own entrypoints, which are given to scripts as bindings. */
const own = exports as unknown as Record<
  "Dispatch" | "Egress" | "Objects" | "Service",
  (options: { props: object }) => Fetcher
>;

interface Loaded {
  /**
   * Name of the isolate. It differs each time the script is loaded, because the previous isolate may still be
   * ending.
   */
  isolate: string;
  /** Number of requests in progress. */
  inFlight: number;
  /** Whether the code was requested. */
  isAsked: boolean;
}

/** Loaded scripts, the least recently used first. */
const loaded = new Map<string, Loaded>();
let loads = 0;
/** The last key of `loaded`, if it is still loaded. */
let lastAcquired: string | undefined;

export const loadedIds = (): string[] => [...loaded.keys()];
/** The name of a script's isolate; undefined if it is not loaded. */
export const isolateOf = (id: string): string | undefined => loaded.get(id)?.isolate;
export const isLoaded = (id: string): boolean => loaded.has(id);

/** Returns the isolate of an acquired script. `given` is its code, if the gateway has sent it already. */
export function load(id: string, env: SystemEnv, given?: Loadable): WorkerStub {
  const script = loaded.get(id)!;
  const codeReceived = script.isAsked ? undefined : Promise.withResolvers<void>();
  if (codeReceived !== undefined) {
    script.isAsked = true;
    // The first request loads the script for all that wait. `waitUntil` lets the load continue if the visitor
    // of that request leaves; inside the callback it would have no effect.
    waitUntil(codeReceived.promise);
  }
  return env.LOADER.get(script.isolate, () =>
    codeOf(id, env, given).finally(() => {
      setTimeout(() => codeReceived?.resolve());
    }),
  );
}

async function codeOf(id: string, env: SystemEnv, given?: Loadable): Promise<WorkerLoaderWorkerCode> {
  const { systemEntrypoints, isDispatched, ...code } = given ?? (await fetchCode(id, env));
  for (const [name, entrypoint] of systemEntrypoints)
    code.env[name] = entrypoint === "D1" ? env.D1 : own[entrypoint]({ props: {} });
  return {
    ...code,
    modules: Object.fromEntries(Object.entries(code.modules).map(([name, module]) => [name, decode(module)])),
    globalOutbound: isDispatched ? own.Egress({ props: {} }) : env.GATEWAY,
  } as WorkerLoaderWorkerCode;
}

async function fetchCode(id: string, env: SystemEnv): Promise<Loadable> {
  const response = await env.GATEWAY.fetch(`http://gateway/script/${encodeURIComponent(id)}`, {
    headers: { [cellHeaders.control]: env.SECRET },
  });
  if (!response.ok) throw new Error(`The script cannot be loaded: ${await response.text()}`);
  return response.json();
}

const fromBase64 = (text: string): Uint8Array =>
  (Uint8Array as unknown as { fromBase64(base64: string): Uint8Array }).fromBase64(text);

function decode(module: Loadable["modules"][string]): WorkerLoaderModule {
  const { base64, ...rest } = module;
  const kind = Object.keys(rest)[0]!;
  // Decoding in JavaScript would block the cell for 60 ms per megabyte.
  if (base64 !== undefined) return { [kind]: fromBase64(base64).buffer };
  return (kind === "json" ? { json: JSON.parse(rest[kind]!) as unknown } : rest) as WorkerLoaderModule;
}

/** Counts a request, marks the script as the most recently used, and makes room for a new script. */
export function acquire(id: string, env: SystemEnv): void {
  let script = loaded.get(id);
  if (script === undefined) {
    unloadDownTo(Number(env.SCRIPTS_MAX) - 1, env).catch(() => {});
    script = { isolate: `${id} ${++loads}`, inFlight: 0, isAsked: false };
    loaded.set(id, script);
  } else if (id !== lastAcquired) {
    loaded.delete(id);
    loaded.set(id, script);
  }
  lastAcquired = id;
  script.inFlight++;
}

export function release(id: string): void {
  const script = loaded.get(id);
  if (script !== undefined) script.inFlight--;
}

/**
 * Unloads idle scripts until at most `count` are left. Resolves when their isolates have ended; goes on even
 * if the request ends before that.
 */
export async function unloadDownTo(count: number, env: SystemEnv): Promise<void> {
  const ends: Promise<unknown>[] = [];
  for (const [id, { isolate, inFlight }] of loaded) {
    if (loaded.size <= count) break;
    if (inFlight > 0) continue;
    loaded.delete(id);
    // The isolate ends during this call, so the call always fails.
    const end = env.LOADER.get(isolate, () => {
      throw new Error("the script is not loaded");
    })
      .getEntrypoint("Control")
      .fetch("http://cell/unload")
      .catch(() => {});
    waitUntil(end);
    ends.push(end);
  }
  await Promise.all(ends);
}

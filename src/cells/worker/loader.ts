/* Scripts as the system worker loads them: on demand, and away again those not used for longest. */
import { exports, waitUntil } from "cloudflare:workers";

export interface SystemEnv {
  LOADER: WorkerLoader;
  FRONT: Fetcher;
  SECRET: string;
  SCRIPTS_MAX: string;
}

export interface Loadable {
  mainModule: string;
  modules: Record<string, Record<string, string | null> & { base64?: string }>;
  compatibilityDate: string;
  compatibilityFlags: string[];
  env: Record<string, unknown>;
  /** The bindings that lead to another script in this cell, by which entrypoint of the system worker. */
  ways: [name: string, way: "Dispatch" | "Service"][];
  /** Whether others dispatch to it: then what it fetches goes through this worker, which knows for whom it runs. */
  isDispatched: boolean;
}

/** The system worker's own entrypoints, as they are handed to scripts. */
const own = exports as unknown as Record<
  "Dispatch" | "Egress" | "Service",
  (options: { props: object }) => Fetcher
>;

/** Scripts that are loaded, the longest unused first, with the number of requests that each is handling. */
const loaded = new Map<string, number>();

export const loadedIds = (): string[] => [...loaded.keys()];
export const isLoaded = (id: string): boolean => loaded.has(id);

/** `given` is its code, where the front has said it already. */
export function load(id: string, env: SystemEnv, given?: Loadable): WorkerStub {
  return env.LOADER.get(id, async () => {
    const { ways, isDispatched, ...code } = given ?? (await fetchCode(id, env));
    for (const [name, way] of ways) code.env[name] = own[way]({ props: {} });
    return {
      ...code,
      modules: Object.fromEntries(
        Object.entries(code.modules).map(([name, module]) => [name, decode(module)]),
      ),
      globalOutbound: isDispatched ? own.Egress({ props: {} }) : env.FRONT,
    } as WorkerLoaderWorkerCode;
  });
}

async function fetchCode(id: string, env: SystemEnv): Promise<Loadable> {
  const response = await env.FRONT.fetch(`http://front/script/${encodeURIComponent(id)}`, {
    headers: { "x-selvedge-control": env.SECRET },
  });
  if (!response.ok) throw new Error(`The script cannot be had: ${await response.text()}`);
  return response.json();
}

function decode(module: Loadable["modules"][string]): WorkerLoaderModule {
  const { base64, ...rest } = module;
  const kind = Object.keys(rest)[0]!;
  if (base64 !== undefined)
    return { [kind]: Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)).buffer };
  return (kind === "json" ? { json: JSON.parse(rest[kind]!) as unknown } : rest) as WorkerLoaderModule;
}

/** Counts a request, makes the script the most recently used, and room for it if it is new. */
export function hold(id: string, env: SystemEnv): void {
  const inFlight = loaded.get(id);
  if (inFlight === undefined) void unloadDownTo(Number(env.SCRIPTS_MAX) - 1, env);
  else loaded.delete(id);
  loaded.set(id, (inFlight ?? 0) + 1);
}

export function release(id: string): void {
  const inFlight = loaded.get(id);
  if (inFlight !== undefined) loaded.set(id, inFlight - 1);
}

/** Resolves when they are gone. What goes on without waiting for it does not stop it, nor does the end of its request. */
export async function unloadDownTo(count: number, env: SystemEnv): Promise<void> {
  const ends: Promise<unknown>[] = [];
  for (const [id, inFlight] of loaded) {
    if (loaded.size <= count) break;
    if (inFlight > 0) continue;
    loaded.delete(id);
    // The isolate ends in the middle of this call: that it fails is how it succeeds.
    const end = load(id, env)
      .getEntrypoint("Control")
      .fetch("http://cell/unload")
      .catch(() => {});
    waitUntil(end);
    ends.push(end);
  }
  await Promise.all(ends);
}

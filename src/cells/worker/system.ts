/* The one worker that a cell begins with. It loads scripts on demand, and unloads those not used for longest. */
import { exports, WorkerEntrypoint, type RpcTarget } from "cloudflare:workers";
import { openLane, type LaneHost } from "../../workflows/worker/lane.ts";

interface Env {
  LOADER: WorkerLoader;
  FRONT: Fetcher;
  SECRET: string;
  SCRIPTS_MAX: string;
}

interface Loadable {
  mainModule: string;
  modules: Record<string, Record<string, string | null> & { base64?: string }>;
  compatibilityDate: string;
  compatibilityFlags: string[];
  env: Record<string, unknown>;
  /** Names of the bindings that lead to another script in this cell. */
  services: string[];
}

/** Scripts that are loaded, the longest unused first, with the number of requests that each is handling. */
const loaded = new Map<string, number>();

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { headers } = request;
    const id = headers.get("x-selvedge-script");
    if (headers.get("x-selvedge-lane") === env.SECRET) return openLane(segmentsOf(env));
    // A sign of life; with a number, the count of scripts to keep.
    if (id === null) return pong(request, env);
    const run = headers.get("x-selvedge-run")!;
    const entrypoint = headers.get("x-selvedge-entrypoint") ?? "Entry";
    const inner = new Request(request);
    inner.headers.delete("x-selvedge-script");
    inner.headers.delete("x-selvedge-entrypoint");
    inner.headers.delete("x-selvedge-run");
    inner.headers.delete("connection"); // of the front's connection, not of the visitor's
    hold(id, env);
    try {
      const worker = load(id, env);
      // Without a run it is loaded, and that is all.
      if (run === "") return await worker.getEntrypoint("Control").fetch("http://cell/load");
      return await worker.getEntrypoint(entrypoint, { props: { run } }).fetch(inner);
    } catch (error) {
      return failure(error, env);
    } finally {
      release(id);
    }
  },
};

/** Runs segments of workflows for a lane. */
const segmentsOf = (env: Env): LaneHost => ({
  async run(id, run, className, lane, start) {
    hold(id, env);
    try {
      const segments = load(id, env).getEntrypoint("Segments", { props: { run } });
      return await (segments as unknown as Segments).run(className, lane, start);
    } finally {
      release(id);
    }
  },
});
interface Segments {
  run(className: string, lane: RpcTarget, start: string): Promise<string>;
}

/**
 * Calls methods of another script on the wish of one in this cell: the front says which script the binding leads to, and
 * gives a run of its own to it.
 */
export class Service extends WorkerEntrypoint<Env> {
  async call(run: string, binding: string, method: string, args: unknown[]): Promise<unknown> {
    const { env } = this;
    const response = await env.FRONT.fetch("http://front/nested", {
      headers: { "x-selvedge-outcome": env.SECRET, "x-selvedge-run": run, "x-selvedge-binding": binding },
    });
    if (!response.ok) throw new Error(await response.text());
    const nested: { id: string; run: string; entrypoint: string } = await response.json();
    hold(nested.id, env);
    try {
      const target = load(nested.id, env).getEntrypoint(nested.entrypoint, {
        props: { run: nested.run },
      }) as unknown as Record<string, (...args: unknown[]) => unknown>;
      return await target[method]!(...args);
    } finally {
      release(nested.id);
    }
  }
}

/** This module's own entrypoints, as they are handed to scripts. */
const own = exports as unknown as { Service(options: { props: object }): Fetcher };

function pong(request: Request, env: Env): Response {
  const keep = Number(new URL(request.url).searchParams.get("keep") ?? Number.NaN);
  if (!Number.isNaN(keep)) unloadDownTo(keep, env);
  return new Response(String(loaded.size));
}

function load(id: string, env: Env): WorkerStub {
  return env.LOADER.get(id, async () => {
    const response = await env.FRONT.fetch(`http://front/script/${encodeURIComponent(id)}`, {
      headers: { "x-selvedge-outcome": env.SECRET },
    });
    if (!response.ok) throw new Error(`The script cannot be had: ${await response.text()}`);
    const { services, ...code }: Loadable = await response.json();
    for (const name of services) code.env[name] = own.Service({ props: {} });
    return {
      ...code,
      modules: Object.fromEntries(
        Object.entries(code.modules).map(([name, module]) => [name, decode(module)]),
      ),
      globalOutbound: env.FRONT,
    } as WorkerLoaderWorkerCode;
  });
}

function decode(module: Loadable["modules"][string]): WorkerLoaderModule {
  const { base64, ...rest } = module;
  const kind = Object.keys(rest)[0]!;
  if (base64 !== undefined)
    return { [kind]: Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)).buffer };
  return (kind === "json" ? { json: JSON.parse(rest[kind]!) as unknown } : rest) as WorkerLoaderModule;
}

/** Counts a request, makes the script the most recently used, and room for it if it is new. */
function hold(id: string, env: Env): void {
  const inFlight = loaded.get(id);
  if (inFlight === undefined) unloadDownTo(Number(env.SCRIPTS_MAX) - 1, env);
  else loaded.delete(id);
  loaded.set(id, (inFlight ?? 0) + 1);
}

function release(id: string): void {
  const inFlight = loaded.get(id);
  if (inFlight !== undefined) loaded.set(id, inFlight - 1);
}

function unloadDownTo(count: number, env: Env): void {
  if (loaded.size <= count) return;
  for (const [id, inFlight] of loaded) {
    if (inFlight > 0) continue;
    loaded.delete(id);
    // The isolate ends in the middle of this call: that it fails is how it succeeds.
    load(id, env)
      .getEntrypoint("Control")
      .fetch("http://cell/unload")
      .catch(() => {});
    if (loaded.size <= count) return;
  }
}

/** What a script threw, said in a way that no script can imitate. */
function failure(error: unknown, env: Env): Response {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  return Response.json(
    { name, message, stack },
    { status: 500, headers: { "x-selvedge-outcome": env.SECRET } },
  );
}

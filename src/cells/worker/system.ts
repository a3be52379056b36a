/* The one worker that a cell begins with: requests and calls for scripts come in here. */
import { WorkerEntrypoint, type RpcTarget } from "cloudflare:workers";
import { collectEarly } from "./collect-early.ts";
import { beginDispatcher, childHeaders, dispatch, endDispatcher } from "./dispatch.ts";
import { hold, load, loadedIds, release, unloadDownTo, type SystemEnv } from "./loader.ts";
import type { Said } from "./said.ts";
import { openLane, type LaneHost } from "../../workflows/worker/lane.ts";

export default {
  async fetch(request: Request, env: SystemEnv): Promise<Response> {
    const said = request.cf as unknown as Said | undefined;
    // A sign of life; or scripts are to be unloaded, and so many kept.
    if (said === undefined) return pong(request, env);
    const { selvedgeRun: run, script: id, generation, entrypoint = "Entry" } = said;
    if (id === undefined)
      return said.lane === env.SECRET ? openLane(segmentsOf(env)) : new Response(null, { status: 400 });
    collectEarly();
    if (generation !== undefined) beginDispatcher(run, id, generation);
    if (run === "unpin") {
      release(id);
      return new Response(null, { status: 204 });
    }
    hold(id, env);
    try {
      const worker = load(id, env);
      // Without a run it is loaded, and that is all.
      if (run === "") return await worker.getEntrypoint("Control").fetch("http://cell/load");
      const response = await worker.getEntrypoint(entrypoint).fetch(request);
      // A script with a channel stays, until the front says that it may go.
      if (run.startsWith("channel-")) hold(id, env);
      return response;
    } catch (error) {
      return failure(error, env);
    } finally {
      release(id);
      if (generation !== undefined) endDispatcher(run);
    }
  },
};

/** Runs segments of workflows for a lane. */
const segmentsOf = (env: SystemEnv): LaneHost => ({
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

/** What bindings to dispatch namespaces lead to. An object: a class would be made for each request. */
export const Dispatch = { fetch: dispatch };

/** What bindings to other scripts of the account lead to. */
export class Service extends WorkerEntrypoint<SystemEnv> {
  /** Calls one of its methods: the front says which script the binding leads to, and gives a run of its own to it. */
  async call(run: string, binding: string, method: string, args: unknown[]): Promise<unknown> {
    const { env } = this;
    const response = await env.FRONT.fetch("http://front/nested", {
      headers: {
        "x-selvedge-control": env.SECRET,
        "x-selvedge-run": run,
        "x-selvedge-binding": binding,
        ...childHeaders(run, env),
      },
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

/** A WebSocket that a script makes with `new` says its run among the protocols. */
const runOf = (headers: Headers): string =>
  headers.get("x-selvedge-run") ??
  headers.get("sec-websocket-protocol")?.split("x-selvedge-run.").at(-1)?.trim() ??
  "";

/** The way out of scripts that others dispatch to: the front is told for whom they run. */
export const Egress = {
  fetch(request: Request, env: SystemEnv): Promise<Response> {
    const internal = childHeaders(runOf(request.headers), env);
    if (internal === undefined) return env.FRONT.fetch(request);
    const inner = new Request(request);
    for (const [name, value] of Object.entries(internal)) inner.headers.set(name, value);
    return env.FRONT.fetch(inner);
  },
};

async function pong(request: Request, env: SystemEnv): Promise<Response> {
  const { searchParams } = new URL(request.url);
  const [keep, share] = [searchParams.get("keep"), searchParams.get("share")];
  if (keep === null && share === null) return new Response(null, { status: 204 });
  await unloadDownTo(keep === null ? Math.floor(loadedIds().length * Number(share)) : Number(keep), env);
  return Response.json(loadedIds());
}

/** What a script threw, said in a way that no script can imitate. */
function failure(error: unknown, env: SystemEnv): Response {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  return Response.json(
    { name, message, stack },
    { status: 500, headers: { "x-selvedge-outcome": env.SECRET } },
  );
}

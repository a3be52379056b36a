/* The system worker of a cell: receives all requests and calls for scripts. */
import { WorkerEntrypoint } from "cloudflare:workers";
import { beginMethod, endMethod } from "./calls.ts";
import { collectEarly } from "./collect-early.ts";
import { takeDispatches } from "../dispatches/worker/counts.ts";
import { beginDispatcher, childHeaders, dispatch, endDispatcher } from "./dispatch.ts";
import { acquire, load, loadedIds, release, unloadDownTo, type SystemEnv } from "./loader.ts";
import { cellHeaders, type RunMetadata } from "../protocol.ts";
import { checkedPath, type RemoteMethod, type Remote } from "./path.ts";
import { beginCaller, endCaller, localCallOf } from "./local-calls.ts";
import { endObject, fetchObject, fireAlarm, removeObject, resetObjects } from "./objects.ts";
import { thrownText } from "./thrown.ts";
import { openWorkflowStream, type InvocationPort, type WorkflowStreamHost } from "./workflow-stream.ts";

export { Door, Objects } from "./objects.ts";

export default {
  async fetch(request: Request, env: SystemEnv): Promise<Response> {
    const metadata = request.cf as unknown as RunMetadata | undefined;
    // A ping, an order to unload scripts, or a question about a run.
    if (metadata === undefined) return pong(request, env);
    const { selvedgeRun: run, script: id, generation, calls, object, alarm, entrypoint = "Entry" } = metadata;
    if (id === undefined)
      return metadata.workflowStream === env.SECRET
        ? openWorkflowStream(invocationsOf(env))
        : new Response(null, { status: 400 });
    collectEarly();
    if (generation !== undefined) beginDispatcher(run, id, generation);
    if (calls !== undefined) beginCaller(run, id, calls, metadata.visitor);
    if (run === "unpin") {
      release(id);
      return new Response(null, { status: 204 });
    }
    acquire(id, env);
    try {
      if (object !== undefined && alarm !== undefined)
        return await fireAlarm({ run, script: id, object }, alarm, env);
      if (object !== undefined) return await fetchObject(request, object, env);
      const worker = load(id, env);
      // An empty run loads the script without running it.
      if (run === "") return await worker.getEntrypoint("Control").fetch("http://cell/load");
      const response = await worker.getEntrypoint(entrypoint).fetch(request);
      // An open channel keeps its script loaded until the gateway sends `unpin`.
      if (run.startsWith("channel-")) acquire(id, env);
      return response;
    } catch (error) {
      return failure(error, env);
    } finally {
      release(id);
      if (generation !== undefined) endDispatcher(run);
      if (calls !== undefined) endCaller(run);
    }
  },
};

/** Runs invocations of workflows for a stream. */
const invocationsOf = (env: SystemEnv): WorkflowStreamHost => ({
  async run(id, run, className, ask, start) {
    acquire(id, env);
    try {
      const invocations = load(id, env).getEntrypoint(
        "WorkflowInvocations",
      ) as unknown as WorkflowInvocations;
      return await invocations.run(run, className, ask, start);
    } finally {
      release(id);
    }
  },
});
interface WorkflowInvocations {
  run(run: string, className: string, ask: InvocationPort, start: string): Promise<unknown>;
}

/**
 * The target of bindings to dispatch namespaces. An object, because a class would be instantiated for each
 * request.
 */
export const Dispatch = { fetch: dispatch };

/** The target of bindings to other scripts of the account. */
export class Service extends WorkerEntrypoint<SystemEnv> {
  /** Calls the method at a path of property names. */
  async call(run: string, binding: string, path: readonly string[], args: unknown[]): Promise<unknown> {
    return this.#reach(run, binding, path, (target, name) => (target[name] as RemoteMethod)(...args));
  }

  /** Reads the property at a path of property names. */
  async read(run: string, binding: string, path: readonly string[]): Promise<unknown> {
    return this.#reach(run, binding, path, (target, name) => target[name]);
  }

  /** Uses the binding's target script, which gets a run of its own. The gateway says which script it is. */
  async #reach(
    run: string,
    binding: string,
    path: readonly string[],
    use: (target: Remote, name: string) => unknown,
  ): Promise<unknown> {
    const { env } = this;
    const names = checkedPath(path);
    const response = await env.GATEWAY.fetch("http://gateway/nested", {
      headers: {
        [cellHeaders.control]: env.SECRET,
        [cellHeaders.run]: run,
        [cellHeaders.binding]: binding,
        ...childHeaders(run, env),
      },
    });
    if (!response.ok) throw new Error(await response.text());
    const nested: NestedCall = await response.json();
    const share = beginMethod(nested.account, nested.id, env);
    acquire(nested.id, env);
    try {
      let target = load(nested.id, env).getEntrypoint(nested.entrypoint, {
        props: { run: nested.run },
      }) as unknown as Remote;
      const last = names.pop()!;
      for (const name of names) target = target[name] as Remote;
      return await use(target, last);
    } finally {
      release(nested.id);
      endMethod(share);
      if (nested.isTimed) tellEnd(nested.run, env);
    }
  }
}

/** The gateway's answer to a method call. */
interface NestedCall {
  id: string;
  account: string;
  run: string;
  entrypoint: string;
  /** Whether the end of the call must be reported to the gateway. */
  isTimed: boolean;
}

function tellEnd(run: string, env: SystemEnv): void {
  const headers = { [cellHeaders.control]: env.SECRET, [cellHeaders.run]: run };
  env.GATEWAY.fetch("http://gateway/nested-end", { headers }).catch(() => {});
}

/** A WebSocket made with `new` has its token among the protocols. */
const runOf = (headers: Headers): string =>
  headers.get(cellHeaders.run) ??
  headers.get("sec-websocket-protocol")?.split(`${cellHeaders.run}.`).at(-1)?.trim() ??
  "";

/** The outbound of dispatched scripts: adds the dispatched run to each request. */
export const Egress = {
  fetch(request: Request, env: SystemEnv): Promise<Response> {
    const internal = childHeaders(runOf(request.headers), env);
    if (internal === undefined) return env.GATEWAY.fetch(request);
    const inner = new Request(request);
    for (const [name, value] of Object.entries(internal)) inner.headers.set(name, value);
    return env.GATEWAY.fetch(inner);
  },
};

async function pong(request: Request, env: SystemEnv): Promise<Response> {
  if (request.method === "POST") return Response.json(takeDispatches(await request.json()));
  const { searchParams } = new URL(request.url);
  const [keep, share] = [searchParams.get("keep"), searchParams.get("share")];
  const run = searchParams.get("run");
  if (run !== null) return Response.json(localCallOf(run) ?? null);
  const namespace = searchParams.get("reset");
  const [object, ended] = [searchParams.get("object"), searchParams.get("ended")];
  if (namespace !== null && object !== null) await removeObject({ namespace, id: object }, env);
  else if (namespace !== null && ended !== null)
    await endObject({ namespace, id: ended }, searchParams.get("reason") ?? "", env);
  else if (namespace !== null) await resetObjects(namespace, env);
  if (keep === null && share === null) return new Response(null, { status: 204 });
  await unloadDownTo(keep === null ? Math.floor(loadedIds().length * Number(share)) : Number(keep), env);
  return Response.json(loadedIds());
}

/** Reports an exception. The cell's secret shows that the answer does not come from a script. */
function failure(error: unknown, env: SystemEnv): Response {
  return Response.json(thrownText(error), { status: 500, headers: { [cellHeaders.outcome]: env.SECRET } });
}

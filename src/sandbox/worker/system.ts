/* The system worker of a cell: receives all requests and calls for scripts. */
import { waitUntil, WorkerEntrypoint } from "cloudflare:workers";
import { beginMethod, endMethod, untilEnd } from "./calls.ts";
import { collectEarly } from "../limits/worker/collect-early.ts";
import { takeDispatches } from "../dispatches/worker/counts.ts";
import { beginDispatcher, childHeaders, dispatch, endDispatcher } from "./dispatch.ts";
import { acquire, isLoaded, load, loadedIds, release, unloadDownTo, type SystemEnv } from "./loader.ts";
import { cellHeaders, withMetadata, type RunMetadata } from "../protocol.ts";
import { checkedPath, type RemoteMethod, type Remote } from "./path.ts";
import { beginCaller, endCaller, localCallOf } from "./local-calls.ts";
import { endObject, removeObject, resetObjects } from "./hosts.ts";
import { fetchObject, fireAlarm } from "./objects.ts";
import { thrownText } from "./thrown.ts";
import { openWorkflowStream, type InvocationPort, type WorkflowStreamHost } from "./workflow-stream.ts";

export { RpcEntrypoint, Objects } from "./objects.ts";

export default {
  fetch(request: Request, env: SystemEnv): Response | Promise<Response> {
    const metadata = request.cf as unknown as RunMetadata | undefined;
    // A ping, an order to unload scripts, or a question about a run.
    if (metadata === undefined) return pong(request, env);
    const { selvedgeRun: run, script: id, object } = metadata;
    if (id === undefined)
      return metadata.workflowStream === env.SECRET
        ? openWorkflowStream(invocationsOf(env))
        : new Response(null, { status: 400 });
    collectEarly();
    if (run === "unpin") {
      release(id);
      return new Response(null, { status: 204 });
    }
    if (run === "") return loadOnly(id, env);
    if (leftEarly.size > 0 && leftEarly.delete(run)) return new Response(null, { status: 499 });
    // An object goes on with its request when the visitor leaves.
    return object === undefined
      ? answerTo(request, id, metadata, env)
      : untilEnd(answerTo(request, id, metadata, env));
  },
};

async function answerTo(
  request: Request,
  id: string,
  metadata: RunMetadata,
  env: SystemEnv,
): Promise<Response> {
  const { selvedgeRun: run, object, alarm, entrypoint = "Entry" } = metadata;
  const place = begin(run, id, metadata, env);
  try {
    if (object !== undefined && alarm !== undefined)
      return await fireAlarm({ run, script: id, object }, alarm, env);
    if (object !== undefined) return await fetchObject(request, { run, script: id, object }, env);
    const response = await load(id, env).getEntrypoint(entrypoint).fetch(request);
    // An open channel keeps its script loaded until the gateway sends `unpin`.
    if (run.startsWith("channel-") && response.webSocket !== null) acquire(id, env);
    return response;
  } catch (error) {
    return failure(error, env);
  } finally {
    if (open[place] === metadata) end(place, metadata);
  }
}

/**
 * The metadata of requests without an answer. Not a Map by token: its outgrown tables would keep metadata of ended
 * requests, and collecting them costs every request.
 */
const open: (RunMetadata | undefined)[] = [];
const free: number[] = [];
/** Runs that were broken off, and whose requests were not in progress: they have ended, or were not read yet. */
const leftEarly = new Set<string>();
const leftEarlyMax = 1000;

/** Returns the request's index in `open`. */
function begin(run: string, id: string, metadata: RunMetadata, env: SystemEnv): number {
  const { generation, calls, visitor } = metadata;
  const place = free.pop() ?? open.length;
  open[place] = metadata;
  if (generation !== undefined) beginDispatcher(run, id, generation);
  if (calls !== undefined) beginCaller(run, id, calls, visitor);
  acquire(id, env);
  return place;
}

function end(place: number, { selvedgeRun: run, script, generation, calls }: RunMetadata): void {
  open[place] = undefined;
  free.push(place);
  release(script!);
  if (generation !== undefined) endDispatcher(run);
  if (calls !== undefined) endCaller(run);
}

/** Ends runs whose visitors have left: workerd continues no code of a request that was broken off. */
function endLeft(runs: readonly string[], env: SystemEnv): void {
  const unknown = new Set(runs);
  const byScript = new Map<string, string[]>();
  for (const [place, metadata] of open.entries()) {
    if (metadata === undefined || !unknown.delete(metadata.selvedgeRun)) continue;
    if (metadata.object !== undefined) continue; // it goes on
    end(place, metadata);
    const script = metadata.script!;
    const left = byScript.get(script);
    if (left === undefined) byScript.set(script, [metadata.selvedgeRun]);
    else left.push(metadata.selvedgeRun);
  }
  for (const run of unknown) leftEarly.add(run);
  for (const [script, left] of byScript) if (isLoaded(script)) waitUntil(endRunsIn(script, left, env));
  for (const run of leftEarly) {
    if (leftEarly.size <= leftEarlyMax) break;
    leftEarly.delete(run);
  }
}

async function endRunsIn(script: string, left: readonly string[], env: SystemEnv): Promise<void> {
  const control = load(script, env).getEntrypoint("Control");
  try {
    await control.fetch("http://cell/left", withMetadata({ selvedgeRun: "", left }));
  } catch {
    // The script was unloaded, or does not start.
  }
}

/** Loads a script without running it. */
async function loadOnly(id: string, env: SystemEnv): Promise<Response> {
  acquire(id, env);
  try {
    return await load(id, env).getEntrypoint("Control").fetch("http://cell/load");
  } catch (error) {
    return failure(error, env);
  } finally {
    release(id);
  }
}

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
    const use = (target: Remote, name: string): unknown => (target[name] as RemoteMethod)(...args);
    return untilEnd(this.#reach(run, binding, path, use));
  }

  /** Reads the property at a path of property names. */
  async read(run: string, binding: string, path: readonly string[]): Promise<unknown> {
    return untilEnd(this.#reach(run, binding, path, (target, name) => target[name]));
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
      if (nested.isTimed) reportEnd(nested.run, env);
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

function reportEnd(run: string, env: SystemEnv): void {
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
  if (request.method === "PUT") {
    endLeft(await request.json(), env);
    return new Response(null, { status: 204 });
  }
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

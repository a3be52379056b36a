/*
 * Requests of one script to another in the same cell, without a way over the front: which script a dispatch leads to is asked once,
 * and holds until the front's configuration changes.
 */
import { hold, isLoaded, load, release, type Loadable, type SystemEnv } from "./loader.ts";

/** A run that may dispatch here: its script, and the state of the configuration that it began with. */
interface Dispatcher {
  script: string;
  generation: string;
  dispatchesLeft: number;
}
const dispatchers = new Map<string, Dispatcher>();

/** What the front says of a dispatch. */
interface Resolution {
  id: string;
  /** The request is to go over the front, which watches it alone. */
  isWatched: boolean;
  isLasting: boolean;
}
/** As it is told; the first time with the script's code. */
type Told = Resolution & { code?: Loadable };
const resolutions = new Map<string, Resolution & { generation: string }>();
const resolutionsMax = 20_000;

/** For whom a dispatched script runs, which the front is told of when the script asks for something. */
const children = new Map<string, Said & { id: string }>();
/** Children that have answered, and when: what they left running may fetch for a while. */
const ended: { run: string; at: number }[] = [];
const afterAnswerMs = 30_000;

/** `said` is what the front says of the run: the configuration's state, and how many subrequests it has. */
export function beginDispatcher(run: string, script: string, said: string): void {
  const [generation = "", dispatchesLeft] = said.split(" ");
  dispatchers.set(run, { script, generation, dispatchesLeft: Number(dispatchesLeft) });
}

export const endDispatcher = (run: string): boolean => dispatchers.delete(run);

/** The internal headers of a fetch on behalf of a child; undefined for a run that the front knows by itself. */
export function childHeaders(run: string, env: SystemEnv): Record<string, string> | undefined {
  const child = children.get(run);
  if (child === undefined) return undefined;
  const said = encodeURIComponent(JSON.stringify({ ...child, child: run }));
  return { "x-selvedge-outcome": env.SECRET, "x-selvedge-child": said };
}

export async function dispatch(request: Request, env: SystemEnv): Promise<Response> {
  const { headers } = request;
  const run = headers.get("x-selvedge-run") ?? "";
  const binding = headers.get("x-selvedge-binding") ?? "";
  const said = headers.get("x-selvedge-dispatch") ?? "";
  const outbound = headers.get("x-selvedge-outbound") ?? "";
  const caller = dispatchers.get(run);
  const { id, isWatched, code } = await resolve(caller, { run, binding, said, outbound }, env);
  if (isWatched) return answered(await env.FRONT.fetch(request));
  if (caller !== undefined && --caller.dispatchesLeft < 0) throw new Error("Too many subrequests.");
  const child = crypto.randomUUID();
  children.set(child, { run, binding, said, outbound, id });
  hold(id, env);
  try {
    return await load(id, env, code)
      .getEntrypoint("Entry", { props: { run: child } })
      .fetch(withoutInternal(request));
  } finally {
    release(id);
    forgetLater(child);
  }
}

/** What the front refuses is thrown; a script's own answer cannot look like that. */
function answered(response: Response): Response {
  const { headers } = response;
  const refusal = headers.get("x-selvedge-error");
  if (refusal === null) return response;
  const error = new Error(decodeURIComponent(refusal));
  error.name = headers.get("x-selvedge-error-name") ?? error.name;
  throw error;
}

interface Said {
  run: string;
  binding: string;
  said: string;
  outbound: string;
}

async function resolve(caller: Dispatcher | undefined, dispatched: Said, env: SystemEnv): Promise<Told> {
  const key = `${caller?.script} ${dispatched.binding} ${dispatched.said}`;
  const known = resolutions.get(key);
  // The front keeps the code of a script that is not loaded only for a while after it was asked.
  if (known !== undefined && known.generation === caller?.generation && isLoaded(known.id)) return known;
  const found = await ask(dispatched, env);
  if (caller !== undefined && found.isLasting) {
    if (resolutions.size >= resolutionsMax) resolutions.clear();
    const { code: _, ...resolution } = found;
    resolutions.set(key, { ...resolution, generation: caller.generation });
  }
  return found;
}

async function ask({ run, binding, said, outbound }: Said, env: SystemEnv): Promise<Told> {
  const response = await env.FRONT.fetch("http://front/dispatch", {
    headers: {
      "x-selvedge-control": env.SECRET,
      "x-selvedge-run": run,
      "x-selvedge-binding": binding,
      "x-selvedge-dispatch": said,
      "x-selvedge-outbound": outbound,
    },
  });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

/** The request as the dispatched script gets it: nothing of its dispatcher's, and not what is known of the visitor (`cf`). */
function withoutInternal(request: Request): Request {
  const inner = new Request(request.url, {
    method: request.method,
    headers: request.headers,
    body: request.body,
    redirect: "manual",
  });
  const { headers } = inner;
  headers.delete("x-selvedge-run");
  headers.delete("x-selvedge-binding");
  headers.delete("x-selvedge-dispatch");
  headers.delete("x-selvedge-outbound");
  return inner;
}

function forgetLater(child: string): void {
  const at = Date.now();
  ended.push({ run: child, at });
  while (ended.length > 0 && at - ended[0]!.at > afterAnswerMs) children.delete(ended.shift()!.run);
}

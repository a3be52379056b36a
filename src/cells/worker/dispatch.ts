/*
 * Requests of one script to another in the same cell, without a way over the front: which script a dispatch leads to is asked once,
 * and holds until the front's configuration changes.
 */
import { internalNames, withSaid, type SaidOfDispatch } from "./said.ts";
import { Linger } from "../../util/linger.ts";
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
  binding: string;
  said: string;
  /** The request is to go over the front, which watches it alone. */
  isWatched: boolean;
  isLasting: boolean;
}
/** As it is told; the first time with the script's code. */
type Told = Resolution & { code?: Loadable | undefined };
const resolutions = new Map<string, Resolution & { generation: string }>();
const resolutionsMax = 20_000;

/** For whom a dispatched script runs, which the front is told of when the script asks for something. */
interface Child {
  run: string;
  outbound: string;
  resolution: Told;
}
const children = new Map<string, Child>();
/** Those that have answered: what they left running may fetch for a while. */
const lateChildren = new Linger<Child>(30_000);

/** `said` is what the front says of the run: the configuration's state, and how many subrequests it has. */
export function beginDispatcher(run: string, script: string, said: string): void {
  const [generation = "", dispatchesLeft] = said.split(" ");
  dispatchers.set(run, { script, generation, dispatchesLeft: Number(dispatchesLeft) });
}

export const endDispatcher = (run: string): boolean => dispatchers.delete(run);

/** The internal headers of a fetch on behalf of a child; undefined for a run that the front knows by itself. */
export function childHeaders(run: string, env: SystemEnv): Record<string, string> | undefined {
  const child = children.get(run) ?? lateChildren.get(run, Date.now());
  if (child === undefined) return undefined;
  const { run: parent, outbound, resolution } = child;
  const { id, binding, said } = resolution;
  const all = { child: run, run: parent, binding, said, outbound, id };
  return { "x-selvedge-outcome": env.SECRET, "x-selvedge-child": encode(JSON.stringify(all)) };
}

export async function dispatch(request: Request, env: SystemEnv): Promise<Response> {
  const { selvedgeRun: run, binding, said, outbound } = request.cf as unknown as SaidOfDispatch;
  const dispatched: Dispatched = { run, binding, said, outbound };
  const caller = dispatchers.get(run);
  const resolution = known(caller, dispatched) ?? (await resolve(caller, dispatched, env));
  const { id, isWatched } = resolution;
  if (isWatched) return answered(await env.FRONT.fetch(forFront(request, dispatched)));
  if (caller !== undefined && --caller.dispatchesLeft < 0) throw new Error("Too many subrequests.");
  const token = crypto.randomUUID();
  const { code } = resolution;
  if (code !== undefined) resolution.code = undefined; // it is not kept with what is kept for a while
  const child: Child = { run, outbound, resolution };
  children.set(token, child);
  hold(id, env);
  try {
    return await load(id, env, code)
      .getEntrypoint("Entry")
      .fetch(request, withSaid({ selvedgeRun: token }));
  } finally {
    release(id);
    children.delete(token);
    lateChildren.put(token, child, Date.now());
  }
}

/** Headers carry ASCII. */
const encode = encodeURIComponent;

/** What the front refuses is thrown; a script's own answer cannot look like that. */
function answered(response: Response): Response {
  const { headers } = response;
  const refusal = headers.get("x-selvedge-error");
  if (refusal === null) return response;
  const error = new Error(decodeURIComponent(refusal));
  error.name = headers.get("x-selvedge-error-name") ?? error.name;
  throw error;
}

/** Which run dispatches, by which binding, and what it says of the script and of its way out. */
interface Dispatched {
  run: string;
  binding: string;
  said: string;
  outbound: string;
}

const keyOf = (caller: Dispatcher | undefined, { binding, said }: Dispatched): string =>
  `${caller?.script} ${binding} ${said}`;

/** Where a dispatch leads, as the front has said for this state of the configuration. */
function known(caller: Dispatcher | undefined, dispatched: Dispatched): Told | undefined {
  const resolution = resolutions.get(keyOf(caller, dispatched));
  // The front keeps the code of a script that is not loaded only for a while after it was asked.
  if (resolution === undefined || resolution.generation !== caller?.generation || !isLoaded(resolution.id))
    return undefined;
  return resolution;
}

async function resolve(
  caller: Dispatcher | undefined,
  dispatched: Dispatched,
  env: SystemEnv,
): Promise<Told> {
  const { binding, said } = dispatched;
  const found: Told = { ...(await ask(dispatched, env)), binding, said };
  if (caller !== undefined && found.isLasting) {
    if (resolutions.size >= resolutionsMax) resolutions.clear();
    const { code: _, ...resolution } = found;
    resolutions.set(keyOf(caller, dispatched), { ...resolution, generation: caller.generation });
  }
  return found;
}

async function ask(
  { run, binding, said, outbound }: Dispatched,
  env: SystemEnv,
): Promise<Omit<Told, "binding" | "said">> {
  const response = await env.FRONT.fetch("http://front/dispatch", {
    headers: {
      "x-selvedge-control": env.SECRET,
      "x-selvedge-run": run,
      "x-selvedge-binding": encode(binding),
      "x-selvedge-dispatch": encode(said),
      "x-selvedge-outbound": encode(outbound),
    },
  });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

/** A dispatch that the front is to watch. */
function forFront(request: Request, { run, binding, said, outbound }: Dispatched): Request {
  const inner = new Request(request);
  const { headers } = inner;
  for (const name of internalNames) headers.delete(name);
  headers.set("x-selvedge-run", run);
  headers.set("x-selvedge-binding", encode(binding));
  headers.set("x-selvedge-dispatch", encode(said));
  if (outbound !== "") headers.set("x-selvedge-outbound", encode(outbound));
  return inner;
}

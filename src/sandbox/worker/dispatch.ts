/*
 * Dispatches of one script to another in the same cell, without a request through the gateway: the gateway
 * resolves the target once, and the result is reused until the configuration changes.
 */
import { beginDispatch, endDispatch, untilEnd } from "./calls.ts";
import { countDispatch, countFault, endTargets } from "../dispatches/worker/counts.ts";
import { cellHeaders, withMetadata, wrapperHeaders, type DispatchMetadata } from "../protocol.ts";
import { Linger } from "../../platform/util/linger.ts";
import { thrownText } from "./thrown.ts";
import { acquire, isLoaded, load, release, type Loadable, type SystemEnv } from "./loader.ts";

/** A run that may dispatch: its script, the generation of the configuration at its start, and the dispatches left. */
interface Dispatcher {
  script: string;
  generation: string;
  dispatchesLeft: number;
}
const dispatchers = new Map<string, Dispatcher>();

/** The gateway's answer to a dispatch. */
interface Resolution {
  id: string;
  account: string;
  binding: string;
  options: string;
  /** The request must go through the gateway. */
  isWatched: boolean;
  isLasting: boolean;
}
/** With the script's code, at the first dispatch to it. */
type CachedResolution = Resolution & { code?: Loadable | undefined };
const resolutions = new Map<string, Resolution & { generation: string }>();
const resolutionsMax = 20_000;

/** A dispatched run. The gateway learns of it when the dispatched script makes its first request. */
interface Child {
  run: string;
  outbound: string;
  resolution: CachedResolution;
}
const children = new Map<string, Child>();
/** Dispatched runs that were answered: work that they left running may make requests for a while. */
const lateChildren = new Linger<Child>(30_000);

/** `state` is RunMetadata.generation. */
export function beginDispatcher(run: string, script: string, state: string): void {
  const [generation = "", dispatchesLeft] = state.split(" ");
  dispatchers.set(run, { script, generation, dispatchesLeft: Number(dispatchesLeft) });
}

export function endDispatcher(run: string): void {
  dispatchers.delete(run);
  endTargets(run);
}

/** The internal headers of a request of a dispatched run; undefined for a run that the gateway knows by its token. */
export function childHeaders(run: string, env: SystemEnv): Record<string, string> | undefined {
  const child = children.get(run) ?? lateChildren.get(run, Date.now());
  if (child === undefined) return undefined;
  const { run: parent, outbound, resolution } = child;
  const { id, binding, options } = resolution;
  const all = { child: run, run: parent, binding, options, outbound, id };
  return { [cellHeaders.outcome]: env.SECRET, [cellHeaders.child]: encode(JSON.stringify(all)) };
}

export function dispatch(request: Request, env: SystemEnv): Promise<Response> {
  const dispatched = read(request.cf as unknown as Partial<DispatchMetadata> | undefined);
  const caller = dispatchers.get(dispatched.run);
  const resolution = known(caller, dispatched);
  return resolution === undefined
    ? dispatchFirst(request, caller, dispatched, env)
    : dispatchTo(resolution, request, caller, dispatched, env);
}

/** Asks the gateway for the target. */
async function dispatchFirst(
  request: Request,
  caller: Dispatcher | undefined,
  dispatched: Dispatched,
  env: SystemEnv,
): Promise<Response> {
  return dispatchTo(await resolve(caller, dispatched, env), request, caller, dispatched, env);
}

function dispatchTo(
  resolution: CachedResolution,
  request: Request,
  caller: Dispatcher | undefined,
  dispatched: Dispatched,
  env: SystemEnv,
): Promise<Response> {
  if (resolution.isWatched) return dispatchWatched(request, dispatched, env);
  if (caller !== undefined && --caller.dispatchesLeft < 0) throw new Error("Too many subrequests.");
  return untilEnd(dispatchHere(request, dispatched, resolution, env));
}

const dispatchWatched = async (request: Request, dispatched: Dispatched, env: SystemEnv): Promise<Response> =>
  answered(await env.GATEWAY.fetch(forGateway(request, dispatched)));

async function dispatchHere(
  request: Request,
  { run, outbound }: Dispatched,
  resolution: CachedResolution,
  env: SystemEnv,
): Promise<Response> {
  const { id } = resolution;
  const share = beginDispatch(resolution.account, id, env);
  const token = crypto.randomUUID();
  const { code } = resolution;
  if (code !== undefined) resolution.code = undefined; // the code must not be kept with the late children
  const child: Child = { run, outbound, resolution };
  children.set(token, child);
  countDispatch(run, id, dispatchers.has(run));
  acquire(id, env);
  try {
    return await load(id, env, code)
      .getEntrypoint("Entry")
      .fetch(request, withMetadata({ selvedgeRun: token }));
  } catch (error) {
    countFault(id, thrownText(error));
    throw error;
  } finally {
    release(id);
    endDispatch(share);
    children.delete(token);
    lateChildren.put(token, child, Date.now());
  }
}

/** Characters. Longer values would not fit into a header. */
const optionsLengthMax = 2048;
const outboundLengthMax = 32 * 1024;

/** Validates the metadata, because a script may have made the request without its wrapper. */
function read(given: Partial<DispatchMetadata> | undefined): Dispatched {
  const text = (name: keyof DispatchMetadata, lengthMax: number): string => {
    const value = given?.[name];
    if (typeof value === "string" && value.length <= lengthMax) return value.toWellFormed();
    throw new TypeError(`Expected text of at most ${lengthMax} characters for ${name} of a dispatch`);
  };
  return {
    run: text("selvedgeRun", optionsLengthMax),
    binding: text("binding", optionsLengthMax),
    options: text("options", optionsLengthMax),
    outbound: text("outbound", outboundLengthMax),
  };
}

/** Headers carry ASCII only. */
const encode = encodeURIComponent;

/** Throws the gateway's refusal. A script's own answer cannot have this header. */
function answered(response: Response): Response {
  const { headers } = response;
  const refusal = headers.get(cellHeaders.error);
  if (refusal === null) return response;
  const error = new Error(decodeURIComponent(refusal));
  const name = headers.get(cellHeaders.errorName);
  if (name !== null) error.name = decodeURIComponent(name);
  throw error;
}

/** The validated metadata of a dispatch. */
interface Dispatched {
  run: string;
  binding: string;
  options: string;
  outbound: string;
}

const keyOf = (caller: Dispatcher | undefined, { binding, options }: Dispatched): string =>
  `${caller?.script} ${binding} ${options}`;

/** The cached target of a dispatch, if it is still valid. */
function known(caller: Dispatcher | undefined, dispatched: Dispatched): CachedResolution | undefined {
  const resolution = resolutions.get(keyOf(caller, dispatched));
  // A target that is no longer loaded is resolved again: the gateway keeps code only for a while.
  if (resolution === undefined || resolution.generation !== caller?.generation || !isLoaded(resolution.id))
    return undefined;
  return resolution;
}

async function resolve(
  caller: Dispatcher | undefined,
  dispatched: Dispatched,
  env: SystemEnv,
): Promise<CachedResolution> {
  const { binding, options } = dispatched;
  const found: CachedResolution = { ...(await ask(dispatched, env)), binding, options };
  if (caller !== undefined && found.isLasting) {
    if (resolutions.size >= resolutionsMax) resolutions.clear();
    const { code: _, ...resolution } = found;
    resolutions.set(keyOf(caller, dispatched), { ...resolution, generation: caller.generation });
  }
  return found;
}

async function ask(
  { run, binding, options, outbound }: Dispatched,
  env: SystemEnv,
): Promise<Omit<CachedResolution, "binding" | "options">> {
  const response = await env.GATEWAY.fetch("http://gateway/dispatch", {
    headers: {
      [cellHeaders.control]: env.SECRET,
      [cellHeaders.run]: run,
      [cellHeaders.binding]: encode(binding),
      [cellHeaders.dispatch]: encode(options),
      [cellHeaders.outbound]: encode(outbound),
    },
  });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

/** Converts a dispatch that must go through the gateway. */
function forGateway(request: Request, { run, binding, options, outbound }: Dispatched): Request {
  const inner = new Request(request);
  const { headers } = inner;
  for (const name of wrapperHeaders) headers.delete(name);
  headers.set(cellHeaders.run, run);
  headers.set(cellHeaders.binding, encode(binding));
  headers.set(cellHeaders.dispatch, encode(options));
  if (outbound !== "") headers.set(cellHeaders.outbound, encode(outbound));
  return inner;
}

/* Calls of Durable Objects, on the callers' side and in the cells of objects. */
import { waitUntil, WorkerEntrypoint } from "cloudflare:workers";
import { untilEnd } from "./calls.ts";
import { childHeaders } from "./dispatch.ts";
import type { SystemEnv } from "./loader.ts";
import { hostOf, keptHost, sendEvent, type HostStub } from "./hosts.ts";
import {
  askGrant,
  beginCaller,
  currentGrant,
  endCaller,
  refusal,
  runLocally,
  scriptOf,
  takeGrant,
} from "./local-calls.ts";
import { checkedPath } from "./path.ts";
import {
  cellHeaders,
  objectQueuedMax,
  tooManyQueuedText,
  withMetadata,
  wrapperHeaders,
  type AlarmCall,
  type AlarmOutcome,
  type LocalCall,
  type ObjectAddress,
  type ObjectEvent,
  type ObjectFetchMetadata,
  type ObjectGrant,
  type ObjectRoute,
} from "../protocol.ts";

interface RpcStub {
  call(token: string, path: readonly string[], args: unknown[] | null): Promise<unknown>;
}

/** Name of the system worker's binding to the cell of objects in a slot. */
export const rpcBinding = (slot: number): string => `RPC${slot}`;

interface Queue {
  /** Requests and calls in progress. */
  length: number;
}
/** By object. An empty queue stays for the object's next call: that costs less than to delete and add it each time. */
const queues = new Map<string, Queue>();
const queuesMax = 10_000;

/** Uses an object, unless too many requests wait for it. The gateway does not see calls within this cell. */
async function queue<T>(object: ObjectAddress, use: () => Promise<T>): Promise<T> {
  const waiting = queueOf(object);
  if (waiting.length >= objectQueuedMax)
    throw Object.assign(new Error(tooManyQueuedText), { overloaded: true });
  waiting.length++;
  try {
    return await use();
  } finally {
    waiting.length--;
  }
}

function queueOf({ namespace, id }: ObjectAddress): Queue {
  const key = `${namespace} ${id}`;
  const known = queues.get(key);
  if (known !== undefined) return known;
  if (queues.size >= queuesMax)
    for (const [each, { length }] of queues) if (length === 0) queues.delete(each);
  const made: Queue = { length: 0 };
  queues.set(key, made);
  return made;
}

/** Hands a request to its object; the metadata goes along as `request.cf`. */
export const fetchObject = async (request: Request, event: ObjectEvent, env: SystemEnv): Promise<Response> =>
  queue(event.object, async () => sendEvent(event, async () => hostOf(event.object, env).fetch(request)));

/** Runs the alarm of an object, and answers with its outcome. */
export const fireAlarm = async (event: ObjectEvent, alarm: AlarmCall, env: SystemEnv): Promise<Response> => {
  const host = hostOf(event.object, env);
  const fire = async (): Promise<AlarmOutcome> => sendEvent(event, async (run) => host.fire(run, alarm));
  return Response.json(await queue(event.object, fire));
};

/** Calls a method of an object in this cell, and notifies the gateway when the call has ended. */
async function callHost(
  { calls, visitor, ...event }: ObjectEvent,
  path: readonly string[],
  args: unknown[] | null,
  env: SystemEnv,
): Promise<unknown> {
  if (calls !== undefined) beginCaller(event.run, event.script, calls, visitor);
  try {
    return await queue(event.object, async () => sendCall(event, path, args, env));
  } finally {
    if (calls !== undefined) endCaller(event.run);
    waitUntil(postToGateway("object-end", event.run, env));
  }
}

const sendCall = (
  event: ObjectEvent,
  path: readonly string[],
  args: unknown[] | null,
  env: SystemEnv,
): Promise<unknown> => sendEvent(event, (run) => hostOf(event.object, env).call(run, path, args));

async function postToGateway(what: string, run: string, env: SystemEnv): Promise<Response> {
  return env.GATEWAY.fetch(`http://gateway/${what}`, {
    headers: { [cellHeaders.control]: env.SECRET, [cellHeaders.run]: run },
  });
}

/** workerd's text for a call whose connection broke. */
const connectionLost = "Network connection lost.";

/** Characters. Longer values would not fit into a header. */
const referenceLengthMax = 8192;

/** Validates the metadata of a fetch, because a script may have made the request without its wrapper. */
function readCall(given: Partial<ObjectFetchMetadata> | undefined): LocalCall {
  const text = (name: keyof ObjectFetchMetadata): string => {
    const value = given?.[name];
    if (typeof value === "string" && value.length <= referenceLengthMax) return value.toWellFormed();
    throw new TypeError(`Expected text of at most ${referenceLengthMax} characters for ${name} of a call`);
  };
  return { run: text("selvedgeRun"), binding: text("binding"), reference: text("reference") };
}

/** Converts a fetch of an object that must go through the gateway. */
function forGateway(request: Request, { run, binding, reference }: LocalCall, env: SystemEnv): Request {
  const inner = new Request(request);
  const { headers } = inner;
  for (const name of wrapperHeaders) headers.delete(name);
  headers.set(cellHeaders.run, run);
  headers.set(cellHeaders.binding, encodeURIComponent(binding));
  headers.set(cellHeaders.object, encodeURIComponent(reference));
  for (const [name, value] of Object.entries(childHeaders(run, env) ?? {})) headers.set(name, value);
  return inner;
}

/** A method call of a wrapper. `reference` is JSON of ObjectReference. */
export type Given = [
  run: string,
  binding: string,
  reference: string,
  path: readonly string[],
  args: unknown[] | null,
];

/** The host whose own stub has received a call. Other calls find their host by the grant. */
export interface ReachedHost {
  id: string;
  fetch(event: ObjectEvent, request: Request, init: RequestInit): Promise<Response>;
  call(event: ObjectEvent, path: readonly string[], args: unknown[] | null): Promise<unknown>;
}

/** Throws if a script uses the stub of one host for a call of another object. */
function checkReached({ object }: ObjectGrant, reached: ReachedHost | undefined): void {
  if (reached !== undefined && object.id !== reached.id)
    throw new TypeError("The call is for another Durable Object.");
}

/** Answers a fetch of an object. The caller's wrapper reads the gateway's refusals in the answer. */
export async function answerFetch(
  request: Request,
  env: SystemEnv,
  reached?: ReachedHost,
): Promise<Response> {
  const call = readCall(request.cf as unknown as Partial<ObjectFetchMetadata> | undefined);
  const grant = takeGrant(call) ?? (await askGrant(call, env));
  if (grant === undefined) return env.GATEWAY.fetch(forGateway(request, call, env));
  checkReached(grant, reached);
  const send = (event: ObjectEvent): Promise<Response> => {
    const { run: selvedgeRun, visitor, object } = event;
    const init = withMetadata(visitor === undefined ? { selvedgeRun } : { selvedgeRun, visitor });
    return reached === undefined
      ? sendEvent(event, () => hostOf(object, env).fetch(request, init))
      : reached.fetch(event, request, init);
  };
  return untilEnd(queue(grant.object, () => runLocally(call, grant, send)));
}

/** Answers a method call of an object. */
export const answerCall = (given: Given, env: SystemEnv, reached?: ReachedHost): Promise<unknown> =>
  untilEnd(callObject(given, env, reached));

async function callObject(
  [run, binding, reference, path, args]: Given,
  env: SystemEnv,
  reached?: ReachedHost,
): Promise<unknown> {
  const names = checkedPath(path);
  const call = readCall({ selvedgeRun: run, binding, reference });
  const grant = takeGrant(call) ?? (await askGrant(call, env));
  if (grant === undefined) return callThroughGateway(call, names, args, env);
  checkReached(grant, reached);
  return queue(grant.object, () =>
    runLocally(call, grant, (event) =>
      reached === undefined ? sendCall(event, names, args, env) : reached.call(event, names, args),
    ),
  );
}

/**
 * The target of bindings to namespaces of Durable Objects. An object, because a class would be instantiated for each
 * request; methods of an object get one argument, and then `env`.
 */
export const Objects = {
  fetch: (request: Request, env: SystemEnv): Promise<Response> => answerFetch(request, env),

  call: (given: Given, env: SystemEnv): Promise<unknown> => answerCall(given, env),

  /**
   * The host of an object that the run may call now; undefined if calls should come here. Its stub gives no rights: the
   * host checks each call as this worker does.
   */
  host([run, binding, reference]: [string, string, string], env: SystemEnv): HostStub | undefined {
    const call = readCall({ selvedgeRun: run, binding, reference });
    const grant = currentGrant(call);
    return grant && keptHost(grant.object, scriptOf(run)!, env);
  },
};

async function callThroughGateway(
  { run, binding, reference }: LocalCall,
  names: readonly string[],
  args: unknown[] | null,
  env: SystemEnv,
): Promise<unknown> {
  const method = encodeURIComponent(names.join(".").slice(0, methodLengthMax).toWellFormed());
  const response = await env.GATEWAY.fetch(`http://gateway/object?method=${method}`, {
    headers: {
      [cellHeaders.control]: env.SECRET,
      [cellHeaders.run]: run,
      [cellHeaders.binding]: encodeURIComponent(binding),
      [cellHeaders.object]: encodeURIComponent(reference),
      ...childHeaders(run, env),
    },
  });
  if (!response.ok) throw await refusal(response);
  const route = await response.json<ObjectRoute>();
  if ("event" in route) return callHost(route.event, names, args, env);
  const stub = (env as unknown as Record<string, RpcStub>)[rpcBinding(route.slot)]!;
  try {
    return await stub.call(route.token, names, args);
  } catch (error) {
    if ((error as Error).message !== connectionLost) throw error;
    // The object's cell has ended: the gateway knows why.
    throw await refusal(await postToGateway("object-fault", route.token, env)).catch(() => error as Error);
  }
}

/**
 * Method calls from other cells. A cell that calls may be hostile, so the gateway says which object a token is for,
 * and a token serves once.
 */
export class RpcEntrypoint extends WorkerEntrypoint<SystemEnv> {
  async call(token: unknown, path: readonly string[], args: unknown[] | null): Promise<unknown> {
    return untilEnd(callByToken(String(token).slice(0, tokenLengthMax), checkedPath(path), args, this.env));
  }
}

async function callByToken(
  token: string,
  names: readonly string[],
  args: unknown[] | null,
  env: SystemEnv,
): Promise<unknown> {
  const response = await postToGateway("object-begin", token, env);
  if (!response.ok) throw await refusal(response);
  return callHost(await response.json<ObjectEvent>(), names, args, env);
}
const tokenLengthMax = 64;
/** Length of a method's name in live logs. */
const methodLengthMax = 256;

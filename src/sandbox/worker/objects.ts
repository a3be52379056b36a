/* Calls of Durable Objects, on the callers' side and in the cells of objects. */
import { waitUntil, WorkerEntrypoint } from "cloudflare:workers";
import { untilEnd } from "./calls.ts";
import { childHeaders } from "./dispatch.ts";
import type { SystemEnv } from "./loader.ts";
import { beginCaller, endCaller, forgetGrants, grantOf, refusal, runLocally } from "./local-calls.ts";
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
  type RunMetadata,
} from "../protocol.ts";

/**
 * The host of an object (object-host.ts). `event` is the token of a run that a call in this cell has begun, or an event;
 * `args` is null to read a property instead of calling it.
 */
interface HostStub {
  fetch(request: Request, init?: RequestInit): Promise<Response>;
  call(event: ObjectEvent | string, path: readonly string[], args: unknown[] | null): Promise<unknown>;
  fire(event: ObjectEvent, alarm: AlarmCall): Promise<AlarmOutcome>;
  reset(reason?: string): Promise<void>;
  remove(): Promise<void>;
}
interface HostNamespace {
  idFromString(id: string): object;
  get(id: object): HostStub;
}
interface RpcStub {
  call(token: string, path: readonly string[], args: unknown[] | null): Promise<unknown>;
}

/** Names of the system worker's bindings to a namespace of this cell, and to the cell of objects in a slot. */
export const namespaceBinding = (namespace: string): string => `O${namespace}`;
export const rpcBinding = (slot: number): string => `RPC${slot}`;

/** Objects that were called since the cell started, by namespace: those that a reset must reach. */
const called = new Map<string, Set<string>>();

function hostOf({ namespace, id }: Pick<ObjectAddress, "namespace" | "id">, env: SystemEnv): HostStub {
  const hosts = (env as unknown as Record<string, HostNamespace | undefined>)[namespaceBinding(namespace)];
  if (hosts === undefined) throw new Error("The Durable Object is not in this cell.");
  let ids = called.get(namespace);
  if (ids === undefined) called.set(namespace, (ids = new Set()));
  ids.add(id);
  return hosts.get(hosts.idFromString(id));
}

/** Requests and calls in progress, by object. */
const queued = new Map<string, number>();

/** Uses an object, unless too many requests wait for it. The gateway does not see calls within this cell. */
async function queue<T>(
  address: Pick<ObjectAddress, "namespace" | "id">,
  env: SystemEnv,
  use: (host: HostStub) => Promise<T>,
): Promise<T> {
  const key = `${address.namespace} ${address.id}`;
  const before = queued.get(key) ?? 0;
  if (before >= objectQueuedMax) throw Object.assign(new Error(tooManyQueuedText), { overloaded: true });
  queued.set(key, before + 1);
  try {
    return await use(hostOf(address, env));
  } finally {
    const now = queued.get(key)! - 1;
    if (now === 0) queued.delete(key);
    else queued.set(key, now);
  }
}

/** Hands a request to its object; the metadata goes along as `request.cf`. */
export const fetchObject = async (
  request: Request,
  address: ObjectAddress,
  env: SystemEnv,
): Promise<Response> => queue(address, env, async (host) => host.fetch(request));

/** Runs the alarm of an object, and answers with its outcome. */
export const fireAlarm = async (event: ObjectEvent, alarm: AlarmCall, env: SystemEnv): Promise<Response> =>
  Response.json(await queue(event.object, env, async (host) => host.fire(event, alarm)));

/** Ends the instances of a deleted namespace, so that none of them writes any more. */
export async function resetObjects(namespace: string, env: SystemEnv): Promise<void> {
  forgetGrants(namespace);
  const ids = [...(called.get(namespace) ?? [])];
  called.delete(namespace);
  await Promise.all(
    ids.map(
      async (id) =>
        hostOf({ namespace, id }, env)
          .reset()
          .catch(() => {}), // the host ends itself
    ),
  );
  called.delete(namespace);
}

/** Ends an instance, whose data is being replaced, or is too large. */
export async function endObject(
  address: Pick<ObjectAddress, "namespace" | "id">,
  reason: string,
  env: SystemEnv,
): Promise<void> {
  forgetGrants(address.namespace);
  await hostOf(address, env)
    .reset(reason)
    .catch(() => {}); // the host ends itself
}

/** Ends an instance, and deletes its data. */
export async function removeObject(
  address: Pick<ObjectAddress, "namespace" | "id">,
  env: SystemEnv,
): Promise<void> {
  await hostOf(address, env).remove();
  await hostOf(address, env)
    .reset()
    .catch(() => {}); // the host ends itself
}

/** Calls a method of an object in this cell, and notifies the gateway when the call has ended. */
async function callHost(
  { calls, visitor, ...event }: ObjectEvent,
  path: readonly string[],
  args: unknown[] | null,
  env: SystemEnv,
): Promise<unknown> {
  if (calls !== undefined) beginCaller(event.run, event.script, calls, visitor);
  try {
    return await queue(event.object, env, async (host) => host.call(event, path, args));
  } finally {
    if (calls !== undefined) endCaller(event.run);
    waitUntil(postToGateway("object-end", event.run, env));
  }
}

/** Calls a method of an object that the gateway has granted. */
const callLocally = async (
  grant: ObjectGrant,
  call: LocalCall,
  names: readonly string[],
  args: unknown[] | null,
  env: SystemEnv,
): Promise<unknown> =>
  runLocally(call, grant, async (run) =>
    queue(grant.object, env, async (host) => host.call(run, names, args)),
  );

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
type Given = [
  run: string,
  binding: string,
  reference: string,
  path: readonly string[],
  args: unknown[] | null,
];

/**
 * The target of bindings to namespaces of Durable Objects. An object, because a class would be instantiated for each
 * request; methods of an object get one argument, and then `env`.
 */
export const Objects = {
  /** Fetches an object. The caller's wrapper reads the gateway's refusals in the answer. */
  async fetch(request: Request, env: SystemEnv): Promise<Response> {
    const call = readCall(request.cf as unknown as Partial<ObjectFetchMetadata> | undefined);
    const grant = await grantOf(call, env);
    if (grant === undefined) return env.GATEWAY.fetch(forGateway(request, call, env));
    const answer = runLocally(call, grant, async (selvedgeRun, visitor) => {
      const metadata: RunMetadata = visitor === undefined ? { selvedgeRun } : { selvedgeRun, visitor };
      return queue(grant.object, env, async (host) => host.fetch(request, withMetadata(metadata)));
    });
    return untilEnd(answer);
  },

  call: async (given: Given, env: SystemEnv): Promise<unknown> => untilEnd(callObject(given, env)),
};

async function callObject([run, binding, reference, path, args]: Given, env: SystemEnv): Promise<unknown> {
  const names = checkedPath(path);
  const call = readCall({ selvedgeRun: run, binding, reference });
  const grant = await grantOf(call, env);
  if (grant !== undefined) return callLocally(grant, call, names, args, env);
  return callThroughGateway(call, names, args, env);
}

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

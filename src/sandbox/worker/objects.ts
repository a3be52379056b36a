/* Calls of Durable Objects, on the callers' side and in the cells of objects. */
import { waitUntil, WorkerEntrypoint } from "cloudflare:workers";
import { childHeaders } from "./dispatch.ts";
import type { SystemEnv } from "./loader.ts";
import { checkedPath } from "./path.ts";
import {
  cellHeaders,
  type AlarmCall,
  type AlarmOutcome,
  type ObjectAddress,
  type ObjectEvent,
  type ObjectRoute,
} from "../protocol.ts";

/** The host of an object (object-host.ts). `args` is null to read a property instead of calling it. */
interface HostStub {
  fetch(request: Request): Promise<Response>;
  call(event: ObjectEvent, path: readonly string[], args: unknown[] | null): Promise<unknown>;
  fire(event: ObjectEvent, alarm: AlarmCall): Promise<AlarmOutcome>;
  reset(reason?: string): Promise<void>;
  remove(): Promise<void>;
}
interface HostNamespace {
  idFromString(id: string): object;
  get(id: object): HostStub;
}
interface DoorStub {
  call(token: string, path: readonly string[], args: unknown[] | null): Promise<unknown>;
}

/** Names of the system worker's bindings to a namespace of this cell, and to the cell of objects in a slot. */
export const namespaceBinding = (namespace: string): string => `O${namespace}`;
export const doorBinding = (slot: number): string => `DOOR${slot}`;

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

/** Hands a request to its object; the metadata goes along as `request.cf`. */
export const fetchObject = async (
  request: Request,
  address: ObjectAddress,
  env: SystemEnv,
): Promise<Response> => hostOf(address, env).fetch(request);

/** Runs the alarm of an object, and answers with its outcome. */
export const fireAlarm = async (event: ObjectEvent, alarm: AlarmCall, env: SystemEnv): Promise<Response> =>
  Response.json(await hostOf(event.object, env).fire(event, alarm));

/** Ends the instances of a deleted namespace, so that none of them writes any more. */
export async function resetObjects(namespace: string, env: SystemEnv): Promise<void> {
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

/** Ends an instance, whose data is being replaced. */
export async function endObject(
  address: Pick<ObjectAddress, "namespace" | "id">,
  env: SystemEnv,
): Promise<void> {
  await hostOf(address, env)
    .reset("Durable Object reset because its storage was restored.")
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

/** Calls a method of an object in this cell, and tells the gateway when the call has ended. */
async function callHost(
  event: ObjectEvent,
  path: readonly string[],
  args: unknown[] | null,
  env: SystemEnv,
): Promise<unknown> {
  try {
    return await hostOf(event.object, env).call(event, path, args);
  } finally {
    waitUntil(tellGateway("object-end", event.run, env));
  }
}

async function tellGateway(what: string, run: string, env: SystemEnv): Promise<Response> {
  return env.GATEWAY.fetch(`http://gateway/${what}`, {
    headers: { [cellHeaders.control]: env.SECRET, [cellHeaders.run]: run },
  });
}

/** The error of a refusal: JSON with a message and the flags of the error. */
async function refusal(response: Response): Promise<Error> {
  const { message, flags = [] } = await response.json<{ message: string; flags?: string[] }>();
  if (message === "") throw new Error("The gateway knows no reason.");
  return Object.assign(new Error(message), Object.fromEntries(flags.map((flag) => [flag, true])));
}

/** workerd's text for a call whose connection broke. */
const connectionLost = "Network connection lost.";

/** The target of bindings to namespaces of Durable Objects. `reference` is JSON of ObjectReference. */
export class Objects extends WorkerEntrypoint<SystemEnv> {
  async call(
    run: string,
    binding: string,
    reference: string,
    path: readonly string[],
    args: unknown[] | null,
  ): Promise<unknown> {
    const { env } = this;
    const names = checkedPath(path);
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
    const door = (env as unknown as Record<string, DoorStub>)[doorBinding(route.slot)]!;
    try {
      return await door.call(route.token, names, args);
    } catch (error) {
      if ((error as Error).message !== connectionLost) throw error;
      // The object's cell has ended: the gateway knows why.
      throw await refusal(await tellGateway("object-fault", route.token, env)).catch(() => error as Error);
    }
  }
}

/**
 * Method calls from other cells. A cell that calls may be hostile, so the gateway says which object a token is for,
 * and a token serves once.
 */
export class Door extends WorkerEntrypoint<SystemEnv> {
  async call(token: unknown, path: readonly string[], args: unknown[] | null): Promise<unknown> {
    const { env } = this;
    const names = checkedPath(path);
    const response = await tellGateway("object-begin", String(token).slice(0, tokenLengthMax), env);
    if (!response.ok) throw await refusal(response);
    return callHost(await response.json<ObjectEvent>(), names, args, env);
  }
}
const tokenLengthMax = 64;
/** Length of a method's name in live logs. */
const methodLengthMax = 256;

/*
 * The hosts of objects in this cell (object-host.ts), their events, and the orders that end them. Hosts are in this
 * isolate, so a host gets only the token of an event. Scripts of the process have its stub, too: they may send it any
 * other text.
 */
import { isolateOf, load, type SystemEnv } from "./loader.ts";
import { forgetGrants } from "./local-calls.ts";
import {
  withMetadata,
  type AlarmCall,
  type AlarmOutcome,
  type ObjectAddress,
  type ObjectEvent,
} from "../protocol.ts";

/**
 * The host of an object. `run` is the token of an event, `secret` the cell's; `args` is null to read a property instead
 * of calling it.
 */
export interface HostStub {
  fetch(request: Request, init?: RequestInit): Promise<Response>;
  call(run: string, path: readonly string[], args: unknown[] | null): Promise<unknown>;
  fire(run: string, alarm: AlarmCall): Promise<AlarmOutcome>;
  reset(secret: string, reason?: string): Promise<void>;
  remove(secret: string): Promise<void>;
}
interface HostNamespace {
  idFromString(id: string): object;
  get(id: object): HostStub;
}
type HostAddress = Pick<ObjectAddress, "namespace" | "id">;

/** Name of the system worker's binding to a namespace of this cell. */
export const namespaceBinding = (namespace: string): string => `O${namespace}`;

/** Objects that were called since the cell started, by namespace: those that a reset must reach. */
const called = new Map<string, Set<string>>();

export function hostOf({ namespace, id }: HostAddress, env: SystemEnv): HostStub {
  const hosts = (env as unknown as Record<string, HostNamespace | undefined>)[namespaceBinding(namespace)];
  if (hosts === undefined) throw new Error("The Durable Object is not in this cell.");
  let ids = called.get(namespace);
  if (ids === undefined) called.set(namespace, (ids = new Set()));
  ids.add(id);
  return hosts.get(hosts.idFromString(id));
}

/** Events on their way to hosts, by token. */
const expected = new Map<string, ObjectEvent>();

/** Sends an event to a host. Its token serves once. */
export async function sendEvent<T>(event: ObjectEvent, send: (run: string) => Promise<T>): Promise<T> {
  const { run } = event;
  expected.set(run, event);
  try {
    return await send(run);
  } finally {
    if (expected.get(run) === event) expected.delete(run);
  }
}

/** The event of a token for the object with this id. Throws if the system worker did not send it. */
export function takeEvent(run: unknown, id: string): ObjectEvent {
  const event = typeof run === "string" ? expected.get(run) : undefined;
  if (event === undefined || event.object.id !== id)
    throw new TypeError("The platform has not sent this event.");
  expected.delete(event.run);
  return event;
}

/** Scripts that keep stubs of hosts, with the names of their isolates. */
const keepers = new Map<string, string>();
/** Number of orders in progress. */
let ending = 0;

/** A stub for the isolate of a script. Undefined while hosts are ended, because their stubs stay broken. */
export function keptHost(address: HostAddress, script: string, env: SystemEnv): HostStub | undefined {
  const isolate = isolateOf(script);
  if (ending > 0 || isolate === undefined) return undefined;
  keepers.set(script, isolate);
  return hostOf(address, env);
}

/** Ends hosts after all scripts have dropped their stubs: a stub of a host that was ended rejects each further call. */
async function afterDrops(env: SystemEnv, end: () => Promise<unknown>): Promise<void> {
  ending++;
  try {
    const all = [...keepers];
    keepers.clear();
    await Promise.all(all.map(async ([script, isolate]) => dropIn(script, isolate, env)));
    await end();
  } finally {
    ending--;
  }
}

async function dropIn(script: string, isolate: string, env: SystemEnv): Promise<void> {
  if (isolateOf(script) !== isolate) return; // it was unloaded
  const order = withMetadata({ selvedgeRun: "", dropsHosts: true });
  await load(script, env)
    .getEntrypoint("Control")
    .fetch("http://cell/drop", order)
    .catch(() => {}); // the isolate has ended
}

/** Ends the instances of a deleted namespace, so that none of them writes any more. */
export async function resetObjects(namespace: string, env: SystemEnv): Promise<void> {
  forgetGrants(namespace);
  await afterDrops(env, async () => {
    const ids = [...(called.get(namespace) ?? [])];
    called.delete(namespace);
    await Promise.all(ids.map(async (id) => reset({ namespace, id }, env)));
    called.delete(namespace);
  });
}

/** Ends an instance, whose data is being replaced, or is too large. */
export async function endObject(address: HostAddress, reason: string, env: SystemEnv): Promise<void> {
  forgetGrants(address.namespace);
  await afterDrops(env, async () => reset(address, env, reason));
}

/** Ends an instance, and deletes its data. */
export async function removeObject(address: HostAddress, env: SystemEnv): Promise<void> {
  await afterDrops(env, async () => {
    await hostOf(address, env).remove(env.SECRET);
    await reset(address, env);
  });
}

async function reset(address: HostAddress, env: SystemEnv, reason?: string): Promise<void> {
  await hostOf(address, env)
    .reset(env.SECRET, reason)
    .catch(() => {}); // the host ends itself
}

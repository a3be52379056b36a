import { RpcStub as Stub, RpcTarget } from "cloudflare:workers";
import { currentRun, forRun } from "../../cells/worker/run.ts";

type Method = (this: unknown, ...args: unknown[]) => unknown;

const RpcStub = Stub as unknown as new () => object;

/** The runs that objects were handed out in: their methods, called from elsewhere, run for those. */
const runOf = new WeakMap<object, string>();
const prepared = new WeakSet<object>([RpcTarget.prototype]);
const depthMax = 8;

/**
 * What goes over RPC to another script, which may call it back later, when nothing tells which run it is for: functions and
 * objects with methods keep the run that they were sent in.
 */
export function carry(value: unknown, depth = 0): unknown {
  const run = currentRun();
  if (run === undefined || depth > depthMax || value === null || value instanceof RpcStub) return value;
  if (typeof value === "function") return carriedFunction(value as Method, run);
  if (typeof value !== "object") return value;
  if (value instanceof RpcTarget) {
    runOf.set(value, run);
    prepare(Object.getPrototypeOf(value) as object);
    return value;
  }
  if (value instanceof Promise) return value.then((settled) => carry(settled, depth));
  if (Array.isArray(value)) return value.map((each) => carry(each, depth + 1));
  if (Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, carry(each, depth + 1)]));
}

/** Stubs of other scripts are functions too, that come with a run already. */
function carriedFunction(value: Method, run: string): Method {
  if (Object.getPrototypeOf(value) !== Function.prototype && !isAsync(value)) return value;
  return (...args) => forRun(run, () => carry(value.apply(undefined, args)));
}

const asyncPrototype = Object.getPrototypeOf(async () => {}) as object;
const isAsync = (value: Method): boolean => Object.getPrototypeOf(value) === asyncPrototype;

/** Once for each class: methods and getters find the run of the object that they are called on. */
function prepare(prototype: object): void {
  if (prepared.has(prototype) || prototype === Object.prototype) return;
  prepared.add(prototype);
  for (const key of Reflect.ownKeys(prototype)) {
    const descriptor = Object.getOwnPropertyDescriptor(prototype, key)!;
    if (key === "constructor" || !descriptor.configurable) continue;
    if (typeof descriptor.value === "function") descriptor.value = carriedMethod(descriptor.value as Method);
    if (descriptor.get !== undefined) descriptor.get = carriedMethod(descriptor.get);
    Object.defineProperty(prototype, key, descriptor);
  }
  prepare(Object.getPrototypeOf(prototype) as object);
}

const carriedMethod = (method: Method): Method =>
  function carried(...args) {
    const run = currentRun() ?? runOf.get(this as object);
    const call = (): unknown => method.apply(this, args);
    return run === undefined ? call() : forRun(run, () => carry(call()));
  };

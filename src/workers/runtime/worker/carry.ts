import { RpcStub as Stub, RpcTarget } from "cloudflare:workers";
import { currentRun, forRun } from "../../../sandbox/worker/run.ts";

type Method = (this: unknown, ...args: unknown[]) => unknown;

const RpcStub = Stub as unknown as new () => object;

/** The run that each object was sent in; its methods run for that run when they are called back. */
const runs = new WeakMap<object, string>();
// Saved before the script's code runs, because a script may replace them.
const { get, set } = WeakMap.prototype;
const { apply } = Reflect;
const runOf = (value: object): string | undefined => apply(get, runs, [value]) as string | undefined;
const prepared = new WeakSet<object>([RpcTarget.prototype]);
const depthMax = 8;

/**
 * Prepares a value for RPC to another script. Functions and objects with methods keep the run that they were
 * sent in, because a later call back does not name one.
 */
export function carry(value: unknown, depth = 0): unknown {
  const run = currentRun();
  if (run === undefined || depth > depthMax || value === null || value instanceof RpcStub) return value;
  if (typeof value === "function") return carriedFunction(value as Method, run);
  if (typeof value !== "object") return value;
  if (value instanceof RpcTarget) {
    apply(set, runs, [value, run]);
    prepare(Object.getPrototypeOf(value) as object);
    return value;
  }
  if (value instanceof Promise) return value.then((settled) => carry(settled, depth));
  if (Array.isArray(value)) return value.map((each) => carry(each, depth + 1));
  if (Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, carry(each, depth + 1)]));
}

/** Functions that are stubs of other scripts have a run already. */
function carriedFunction(value: Method, run: string): Method {
  if (Object.getPrototypeOf(value) !== Function.prototype && !isAsync(value)) return value;
  return (...args) => forRun(run, () => carry(value.apply(undefined, args)));
}

const asyncPrototype = Object.getPrototypeOf(async () => {}) as object;
const isAsync = (value: Method): boolean => Object.getPrototypeOf(value) === asyncPrototype;

/** Wraps the methods and getters of a class once: they look up the run of the object that they are called on. */
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
    const run = currentRun() ?? runOf(this as object);
    const call = (): unknown => method.apply(this, args);
    return run === undefined ? call() : forRun(run, () => carry(call()));
  };

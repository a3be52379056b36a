import { RpcStub as Stub, RpcTarget } from "cloudflare:workers";
import { currentRun, forRun } from "../../../sandbox/worker/run.ts";
import { bindingName, isStub } from "./binding-object.ts";
import { forwarderOf } from "./forwarder.ts";

type Method = (this: unknown, ...args: unknown[]) => unknown;

const RpcStub = Stub as unknown as new () => object;

/** The run that each object was sent in; its methods run for that run when they are called back. */
const runs = new WeakMap<object, string>();
// Saved before the script's code runs, because a script may replace them.
const { get, set } = WeakMap.prototype;
const { apply } = Reflect;
const { getPrototypeOf, keys, prototype: anyObject } = Object;
const { isArray } = Array;
const NativeDomException = DOMException;
const runOf = (value: object): string | undefined => apply(get, runs, [value]) as string | undefined;
const prepared = new WeakSet<object>([RpcTarget.prototype]);
const depthMax = 8;

/**
 * Prepares a value for RPC to another script. Functions and objects with methods keep the run that they were
 * sent in, because a later call back does not name one. Stubs become targets that call them. Values without any of
 * these stay the same object, so cycles and repeated objects pass.
 */
export function carry(value: unknown, depth = 0): unknown {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return value;
  const run = currentRun();
  if (run === undefined || depth > depthMax || value instanceof RpcStub) return value;
  const binding = bindingName(value);
  if (binding !== undefined) return carriedBinding(value, binding, run);
  if (typeof value === "function") return carriedFunction(value as Method, run);
  if (value instanceof RpcTarget) {
    apply(set, runs, [value, run]);
    prepare(getPrototypeOf(value) as object);
    return value;
  }
  if (value instanceof Promise) return value.then((settled) => carry(settled, depth));
  if (isArray(value)) return carriedList(value, depth);
  return getPrototypeOf(value) === anyObject ? carriedObject(value as Record<string, unknown>, depth) : value;
}

function carriedBinding(value: object, name: string, run: string): object {
  if (isStub(value)) return forwarderOf(value, run);
  // workerd's text for its own bindings.
  const message = `Could not serialize object of type "${name}". This type does not support serialization.`;
  throw new NativeDomException(message, "DataCloneError");
}

/** Copied only if an element changes. */
function carriedList(list: unknown[], depth: number): unknown[] {
  let copy = list;
  for (let i = 0; i < list.length; i++) {
    const each = list[i];
    const carried = carry(each, depth + 1);
    if (carried === each) continue;
    if (copy === list) copy = [...list];
    copy[i] = carried;
  }
  return copy;
}

function carriedObject(object: Record<string, unknown>, depth: number): object {
  let copy = object;
  const names = keys(object);
  for (let i = 0; i < names.length; i++) {
    const name = names[i]!;
    const each = object[name];
    const carried = carry(each, depth + 1);
    if (carried === each) continue;
    if (copy === object) copy = { ...object };
    copy[name] = carried;
  }
  return copy;
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

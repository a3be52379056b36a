/*
 * Creates bindings that look like workerd's own: objects without own properties whose class has the methods.
 * Inspecting one never calls anything. Native functions are saved before the script's code is loaded.
 */
const { create, defineProperties, defineProperty, getOwnPropertyDescriptors, prototype: anyObject } = Object;
const { apply, get: getProperty } = Reflect;
const NativeProxy = Proxy;

/** The member under this symbol answers for every name that the binding does not have. */
export const wildcard = Symbol("wildcard");
type Find = (name: string) => unknown;

/** Names that promises and JSON read from any value; no binding has them. */
const isAsked = (name: PropertyKey): boolean => name === "then" || name === "toJSON";

/** Class names of bindings. */
const bindings = new WeakMap<object, string>();
/** Class names of bindings that have the methods of another script or object. */
const stubs = new WeakSet();
const { get: getName, set: setName } = WeakMap.prototype;
const { add, has } = WeakSet.prototype;

/** The class name of a binding; undefined for any other value. */
export const bindingName = (value: object): string | undefined =>
  apply(getName, bindings, [value]) as string | undefined;
export const isStub = (value: object): boolean => apply(has, stubs, [value]);

/**
 * A method of a stub, saved before a script can replace it. With a compatibility date from before RPC, workerd reads
 * methods of stubs only during a request: then undefined.
 */
export function savedMethod<Stub, Name extends keyof Stub>(stub: Stub, name: Name): Stub[Name] | undefined {
  try {
    return stub[name];
  } catch {
    return undefined;
  }
}

/** Creates a binding of a class with the given methods. `members[wildcard]` answers for all other names. */
export function bindingObject(className: string, members: object): object {
  const { [wildcard]: found, ...methods } = getOwnPropertyDescriptors(members) as PropertyDescriptorMap & {
    [wildcard]?: { value?: Find };
  };
  const target = create(classOf(className, methods)) as object;
  const find = found?.value;
  // A proxy, because structuredClone refuses proxies as it refuses workerd's bindings.
  if (find === undefined) return named(new NativeProxy(target, {}), className);
  const isRemote = (name: PropertyKey): name is string =>
    typeof name === "string" && !isAsked(name) && !(name in target);
  const stub = new NativeProxy(target, {
    get: (of, name, receiver): unknown => (isRemote(name) ? find(name) : getProperty(of, name, receiver)),
    has: (of, name) => isRemote(name) || name in of,
  });
  apply(add, stubs, [stub]);
  return named(stub, className);
}

function named(binding: object, className: string): object {
  apply(setName, bindings, [binding, className]);
  return binding;
}

/**
 * A property of another script at a path: a function that calls it, and a thenable that reads it. Nothing is
 * sent before it is called or awaited.
 */
export function remoteProperty(
  find: Find,
  call: (args: unknown[]) => unknown,
  read?: () => Promise<unknown>,
): unknown {
  return new NativeProxy(() => {}, {
    apply: (_target, _self, args: unknown[]) => call(args),
    get(_target, name): unknown {
      if (name === Symbol.toStringTag) return "RpcProperty";
      if (typeof name === "symbol" || name === "toJSON") return undefined;
      if (name === "then" || name === "catch" || name === "finally")
        return (
          read &&
          ((...args: []) => (read() as unknown as Record<string, (...args: []) => unknown>)[name]!(...args))
        );
      return name in anyObject ? getProperty(anyObject, name) : find(name);
    },
    getPrototypeOf: () => anyObject,
  });
}

/** A placeholder for a part of a binding that is not supported: throws an explanation when used. */
export const absentPart = (what: string): unknown =>
  remoteProperty(
    (name) => absentPart(`${what}.${name}`),
    () => {
      throw new Error(`${what}() is not available here`);
    },
  );

/** `connect()` of bindings with `fetch()`. Without it, the name would be taken for a method of the other script. */
export function connect(): never {
  throw new Error(
    "connect() of a binding is not available here. Use connect() of cloudflare:sockets for a server, and fetch() or a method for a script.",
  );
}

/** The prototype of a class with this name. Scripts cannot create other instances. */
function classOf(name: string, methods: PropertyDescriptorMap): object {
  // V8's errors show this name: "#<Binding> could not be cloned".
  function Binding(): never {
    throw new TypeError("Illegal constructor");
  }
  defineProperty(Binding, "name", { value: name });
  const prototype = Binding.prototype as object;
  defineProperties(prototype, methods);
  defineProperty(prototype, Symbol.toStringTag, { value: name, configurable: true });
  return prototype;
}

import { DurableObject, RpcTarget } from "cloudflare:workers";
import { forRun, metadataOf, tellThrown } from "../../../sandbox/worker/run.ts";
import type { InstanceProps } from "../../../sandbox/worker/object-host.ts";
import { perhapsTraced, tracedInObject } from "../../tail/worker/console.ts";
import { carry } from "../../runtime/worker/carry.ts";
import { prepareContext } from "./context.ts";
import { noteClass, type FacetOptions } from "./facets.ts";

// Saved before the script's code runs, because a script may replace them.
const { apply, construct, get: getProperty, getOwnPropertyDescriptor } = Reflect;
const { getPrototypeOf, defineProperty, hasOwn, prototype: anyObject } = Object;
const [NativeProxy, NativeTypeError] = [Proxy, TypeError];
const { floor, random } = Math;
const facetEventsMax = 1e12;
const anyFunction = Function.prototype as object;

type Method = (this: unknown, ...args: unknown[]) => unknown;
/** What a host, or an object with facets, gives to an instance. */
interface GivenProps extends InstanceProps {
  facet?: FacetOptions;
}
type Context = DurableObjectState<GivenProps>;
type WaitUntil = (promise: Promise<unknown>) => void;
type ObjectClass = new (ctx: Context, env: object) => object;

/** Names that other scripts cannot call: handlers of events, and members of stubs. */
const reserved = [
  "alarm",
  "connect",
  "constructor",
  "dup",
  "fetch",
  "selvedgeCall",
  "webSocketClose",
  "webSocketError",
  "webSocketMessage",
];
const isReserved = (name: string): boolean => {
  for (let i = 0; i < reserved.length; i++) if (reserved[i] === name) return true;
  return false;
};

const missing = (name: string): Error =>
  new NativeTypeError(`The RPC receiver does not implement the method "${name}".`);

/** As `objectOf`, for an exported class that has no namespace; `other` if it is not a class of objects. */
export const facetOf = (exported: unknown, name: string, other: unknown): unknown =>
  typeof exported === "function" && exported.prototype instanceof DurableObject
    ? objectOf(exported, name)
    : other;

/**
 * The class that workerd runs for a script's class of Durable Objects. Each event runs within the run that the gateway
 * began for it, so that what the object fetches is its own.
 */
export function objectOf(exported: unknown, name: string): ObjectClass {
  if (typeof exported !== "function")
    throw new NativeTypeError(
      "A class of Durable Objects that the script declared is not exported as a class.",
    );
  noteClass(name);
  const Base = exported as ObjectClass;
  const Begun = new NativeProxy(Base, { construct: begin });
  let runOf!: (instance: object) => string;
  let waitUntilOf!: (instance: object) => WaitUntil;
  class Instance extends Begun {
    readonly #standing: string;
    readonly #waitUntil: WaitUntil;
    /** Number of events that no request began. Those of a facet and of its object must differ. */
    #events: number;

    constructor(ctx: Context, env: object) {
      const { object, facet } = ctx.props;
      const waitUntil = ctx.waitUntil.bind(ctx);
      super(ctx, env);
      this.#waitUntil = waitUntil;
      this.#standing = object.standing;
      this.#events = facet === undefined ? 0 : floor(random() * facetEventsMax);
    }

    /** Calls the method, or without arguments reads the property, at a path of names. For the host only. */
    selvedgeCall(
      run: string,
      path: readonly string[],
      args: unknown[] | null,
      isTraced: boolean | undefined,
    ): unknown {
      if (isTraced !== true) return forRun(run, () => reach(this, path, args));
      return forRun(run, () => tracedInObject(this.#waitUntil, () => reach(this, path, args), true));
    }

    static {
      runOf = (instance) => (#standing in instance ? `${instance.#standing}.${++instance.#events}` : "");
      waitUntilOf = (instance) => (#waitUntil in instance ? instance.#waitUntil : () => {});
    }
  }
  wrapHandlers(Instance, Base, { runOf, waitUntilOf });
  defineProperty(Instance, "name", { value: Base.name, configurable: true });
  defineProperty(Instance.prototype, "constructor", { value: Base, writable: true, configurable: true });
  return Instance;
}

/** Constructs an instance within a run of its own: an object that wakes has no request. */
function begin(Base: ObjectClass, given: [ctx: Context, env: object], made: NewableFunction): object {
  const [ctx] = given;
  const { object, facet } = ctx.props;
  prepareContext(ctx, object, facet);
  return forRun(`${object.standing}.0`, () => construct(Base, given, made) as object);
}

/** Wraps the handlers that the class has: workerd looks at which there are. */
function wrapHandlers(
  Instance: ObjectClass,
  Base: ObjectClass,
  {
    runOf,
    waitUntilOf,
  }: { runOf: (instance: object) => string; waitUntilOf: (instance: object) => WaitUntil },
): void {
  const handlers = Base.prototype as Record<string, unknown>;
  const prototype = Instance.prototype as object;
  const { fetch } = handlers;
  if (typeof fetch === "function")
    define(prototype, "fetch", async function handle(this: object, request: Request) {
      const { selvedgeRun: run, isTraced } = metadataOf(request);
      const call = (): unknown => apply(fetch as Method, this, [request]);
      try {
        if (isTraced !== true) return await forRun(run, call);
        return await forRun(run, () => tracedInObject(waitUntilOf(this), call, false));
      } catch (error) {
        await forRun(run, async () => tellThrown(error));
        throw error;
      }
    });
  for (const name of ["webSocketMessage", "webSocketClose", "webSocketError"]) {
    const handler = handlers[name];
    if (typeof handler !== "function") continue;
    define(prototype, name, function handle(this: object, ...args: unknown[]) {
      return forRun(runOf(this), () =>
        perhapsTraced(waitUntilOf(this), name, () => apply(handler as Method, this, args)),
      );
    });
  }
}

const define = (target: object, name: string, value: unknown): void => {
  defineProperty(target, name, { value, writable: true, configurable: true });
};

/** Follows a path as workerd does: members of the class, then what they return. */
function reach(instance: object, path: readonly string[], args: unknown[] | null): unknown {
  let owner: unknown = instance;
  for (let i = 0; i < path.length - 1; i++) owner = member(owner, path[i]!);
  const last = path[path.length - 1]!;
  const value = member(owner, last);
  if (args === null) return carry(typeof value === "function" ? bound(value as Method, owner) : value);
  if (typeof value !== "function") throw new NativeTypeError(`"${last}" is not a function.`);
  return carry(apply(value as Method, owner, args));
}

const bound =
  (method: Method, owner: unknown): Method =>
  (...args) =>
    apply(method, owner, args);

/** A member that other scripts may see: of a class's prototype, or an own one of a plain object. */
function member(owner: unknown, name: string): unknown {
  if ((typeof owner !== "object" || owner === null) && typeof owner !== "function") throw missing(name);
  const isPlain = getPrototypeOf(owner) === anyObject;
  if (isPlain) {
    if (!hasOwn(owner, name)) throw missing(name);
    return (owner as Record<string, unknown>)[name];
  }
  if (isReserved(name) || hasOwn(owner, name)) throw missing(name);
  for (
    let at = getPrototypeOf(owner) as object | null;
    isOwnClass(at);
    at = getPrototypeOf(at) as object | null
  )
    if (getOwnPropertyDescriptor(at, name) !== undefined) return getProperty(at, name, owner);
  throw missing(name);
}

const isOwnClass = (at: object | null): at is object =>
  at !== null &&
  at !== anyObject &&
  at !== anyFunction &&
  at !== DurableObject.prototype &&
  at !== (RpcTarget.prototype as object);

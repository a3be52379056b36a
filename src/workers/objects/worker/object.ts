import { DurableObject, RpcTarget } from "cloudflare:workers";
import { collectEnded } from "../../../sandbox/limits/worker/collect-early.ts";
import { collectMessages } from "../../../sandbox/limits/worker/collect-messages.ts";
import { KeptHosts } from "../../../sandbox/objects/worker/kept-hosts.ts";
import { forRun, metadataOf, noteNearObjects, reportThrown } from "../../../sandbox/worker/run.ts";
import type { AlarmCall, AlarmOutcome } from "../../../sandbox/protocol.ts";
import type { InstanceProps } from "../../../sandbox/worker/object-host.ts";
import { perhapsTraced, tracedInObject } from "../../tail/worker/console.ts";
import { carry } from "../../runtime/worker/carry.ts";
import type { Alarm } from "./alarms.ts";
import { prepareContext } from "./context.ts";
import { noteClass, type FacetOptions } from "./facets.ts";

// Saved before the script's code runs, because a script may replace them.
const { apply, construct, get: getProperty, getOwnPropertyDescriptor } = Reflect;
const { getPrototypeOf, defineProperty, hasOwn, prototype: anyObject } = Object;
const [NativeProxy, NativeTypeError, NativePromise] = [Proxy, TypeError, Promise];
const { floor, random } = Math;
const facetEventsMax = 1e12;
const anyFunction = Function.prototype as object;
const { get: getWeak, set: setWeak } = WeakMap.prototype;

/** The alarms of instances, by their `ctx`. */
const alarms = new WeakMap<object, Alarm>();
/** The versions of instances. */
const scripts = new WeakMap<object, string>();

type Method = (this: unknown, ...args: unknown[]) => unknown;
/** The parameters of an instance: from its host, or for a facet from its object. */
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
  "selvedgeAlarm",
  "selvedgeCall",
  "selvedgeScript",
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
 * began for it, so that the object's requests belong to that run.
 */
export function objectOf(exported: unknown, name: string): ObjectClass {
  const Base = classOf(exported);
  noteClass(name);
  const Begun = new NativeProxy(Base, { construct: begin });
  const handlers = Base.prototype as Record<string, unknown>;
  const { alarm } = handlers;
  let parts!: InstanceParts;
  class Instance extends Begun {
    readonly #standing: string;
    readonly #waitUntil: WaitUntil;
    readonly #hosts = new KeptHosts();
    /** Undefined in a facet. */
    readonly #alarm: Alarm | undefined;
    /** Number of the last event that no request began. A facet and its object must use different numbers. */
    #events: number;

    constructor(ctx: Context, env: object) {
      const { object, facet } = ctx.props;
      const { waitUntil } = ctx;
      super(ctx, env);
      // Not bind: a script may replace it, and the native context has the object's token.
      this.#waitUntil = (promise) => {
        apply(waitUntil, ctx, [promise]);
      };
      this.#standing = object.standing;
      this.#events = facet === undefined ? 0 : floor(random() * facetEventsMax);
      this.#alarm = apply(getWeak, alarms, [ctx]) as Alarm | undefined;
    }

    /** Calls the method, or without arguments reads the property, at a path of names. For the host only. */
    selvedgeCall(run: string, path: readonly string[], args: unknown[] | null, isTraced?: boolean): unknown {
      const call = (): unknown => reach(this, path, args);
      const traced = isTraced === true ? () => tracedInObject(this.#waitUntil, call, true) : call;
      return afterAlarm(parts.alarmOf(this), forRun(run, traced, this.#hosts));
    }

    /** Runs the alarm. For the host only. */
    selvedgeAlarm(run: string, call: AlarmCall): Promise<AlarmOutcome> {
      const handler = (info: object): unknown =>
        perhapsTraced(this.#waitUntil, "alarm", () => apply(alarm as Method, this, [info]));
      const fire = (): Promise<AlarmOutcome> =>
        this.#alarm!.fire(call, isHandler(alarm) ? handler : undefined);
      return forRun(run, fire, this.#hosts);
    }

    static {
      parts = {
        runOf: (instance) => (#standing in instance ? `${instance.#standing}.${++instance.#events}` : ""),
        alarmOf: (instance) => (isHandler(alarm) && #alarm in instance ? instance.#alarm : undefined),
        waitUntilOf: (instance) => (#waitUntil in instance ? instance.#waitUntil : () => {}),
        hostsOf: (instance) => (#hosts in instance ? instance.#hosts : undefined),
      };
    }
  }
  wrapHandlers(Instance, handlers, parts);
  defineProperty(Instance, "name", { value: Base.name, configurable: true });
  defineProperty(Instance.prototype, "constructor", { value: Base, writable: true, configurable: true });
  return Instance;
}

function classOf(exported: unknown): ObjectClass {
  if (typeof exported === "function") return exported as ObjectClass;
  throw new NativeTypeError(
    "The script declares a class of Durable Objects, but exports something else under its name.",
  );
}

/** Constructs an instance within a run of its own: an object that wakes has no request. */
function begin(Base: ObjectClass, given: [ctx: Context, env: object], made: NewableFunction): object {
  noteNearObjects();
  collectEnded();
  const ctx = given[0]; // not by iteration, which a script may replace
  const { object, facet, script } = ctx.props;
  const { alarm } = Base.prototype as Record<string, unknown>;
  apply(setWeak, alarms, [ctx, prepareContext(ctx, object, facet, isHandler(alarm))]);
  const instance = forRun(`${object.standing}.0`, () => construct(Base, given, made) as object);
  apply(setWeak, scripts, [instance, script]);
  return instance;
}

const isHandler = (value: unknown): boolean => typeof value === "function";

/** The properties of an instance that handlers use. */
interface InstanceParts {
  runOf: (instance: object) => string;
  waitUntilOf: (instance: object) => WaitUntil;
  alarmOf: (instance: object) => Alarm | undefined;
  hostsOf: (instance: object) => KeptHosts | undefined;
}

/** Wraps only the handlers that the class has, because workerd checks which handlers exist. */
function wrapHandlers(
  Instance: ObjectClass,
  handlers: Record<string, unknown>,
  { runOf, waitUntilOf, alarmOf, hostsOf }: InstanceParts,
): void {
  const prototype = Instance.prototype as object;
  const { fetch } = handlers;
  define(prototype, "selvedgeScript", function version(this: object) {
    return apply(getWeak, scripts, [this]) as string;
  });
  if (typeof fetch === "function")
    define(prototype, "fetch", async function handle(this: object, request: Request) {
      const { selvedgeRun: run, isTraced } = metadataOf(request);
      const call = (): unknown => apply(fetch as Method, this, [request]);
      try {
        const traced = isTraced === true ? () => tracedInObject(waitUntilOf(this), call, false) : call;
        const response = await forRun(run, traced, hostsOf(this));
        const sending = alarmOf(this)?.sending;
        if (sending !== undefined) await sending;
        return response;
      } catch (error) {
        await forRun(run, async () => reportThrown(error));
        throw error;
      }
    });
  for (const name of ["webSocketMessage", "webSocketClose", "webSocketError"]) {
    const handler = handlers[name];
    if (typeof handler !== "function") continue;
    define(prototype, name, function handle(this: object, ...args: unknown[]) {
      if (name === "webSocketMessage") collectMessages(args[1]);
      const call = (): unknown =>
        perhapsTraced(waitUntilOf(this), name, () => apply(handler as Method, this, args));
      return forRun(runOf(this), call, hostsOf(this));
    });
  }
}

/** Holds a result back until the gateway knows the object's alarm. */
function afterAlarm(alarm: Alarm | undefined, result: unknown): unknown {
  if (alarm === undefined) return result;
  const isReady = alarm.sending === undefined && !(result instanceof NativePromise);
  return isReady ? result : afterResult(alarm, result);
}

async function afterResult(alarm: Alarm, result: unknown): Promise<unknown> {
  const value: unknown = await result;
  if (alarm.sending !== undefined) await alarm.sending;
  return value;
}

const define = (target: object, name: string, value: unknown): void => {
  defineProperty(target, name, { value, writable: true, configurable: true });
};

/** Follows a path as workerd does: a member of the class, then members of its value. */
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

import type { ObjectAddress } from "../../../sandbox/protocol.ts";
import { withMetadata } from "../../../sandbox/protocol.ts";
import { neededRun } from "../../../sandbox/worker/run.ts";
import { absentPart, bindingObject, remoteProperty, wildcard } from "../../runtime/worker/binding-object.ts";
import { carry } from "../../runtime/worker/carry.ts";
import { hexOf, isObjectId, type DurableObjectId } from "./ids.ts";

/*
 * Facets that a customer's object opens: child objects with databases of their own, of classes of the same script. They
 * are native facets of the object, which is itself a facet of the platform's host. The wrapper of a class needs to know
 * its object, so classes are native ones with the platform's props, and stubs name the run that calls.
 */

// Saved before the script's code runs, because a script may replace them.
const { apply } = Reflect;
const { create } = Object;
const { get, set } = WeakMap.prototype;
const NativeProxy = Proxy;
const NativeTypeError = TypeError;
const NativeRequest = Request;

/** The properties of a facet besides the address of the customer's object. */
export interface FacetOptions {
  props: unknown;
  /** Whether its `ctx.id` is the text that the customer chose. */
  hasTextId: boolean;
}

interface NativeFacets {
  get(name: string, options: () => Promise<object>): NativeFacet;
  abort(name: string, reason: unknown): void;
  delete(name: string): void;
  clone(source: string, target: string): void;
}
interface NativeFacet {
  fetch(request: Request, init: RequestInit): Promise<Response>;
  selvedgeCall(run: string, path: readonly string[], args: unknown): unknown;
}
/** workerd's class of an object of this script; a call gives it props. */
type NativeClass = (options: { props: object }) => object;

/** The classes that `ctx.exports` has returned, with their props. */
const classes = new WeakMap<object, { native: NativeClass; props: unknown }>();

/** The exported classes of objects. */
const names: string[] = [];
export const noteClass = (name: string): void => {
  names[names.length] = name;
};

/** `ctx.exports` of an object: its script's classes of objects. `native` is undefined without enable_ctx_exports. */
export function exportsOf(native: Record<string, unknown> | undefined): object | undefined {
  if (native === undefined) return undefined;
  const shown = create(null) as Record<string, unknown>;
  for (let i = 0; i < names.length; i++)
    shown[names[i]!] = classOf(native[`Object:${names[i]!}`] as NativeClass, {});
  // Other exports throw an error that explains why they cannot be used.
  return new NativeProxy(shown, {
    get: (of, name): unknown =>
      typeof name === "symbol" || name in of
        ? of[name as string]
        : `Entry:${name}` in native || name === "default"
          ? absentPart(`ctx.exports.${name}`)
          : undefined,
  });
}

function classOf(native: NativeClass, props: unknown): object {
  const made = (options?: { props?: unknown }): object => classOf(native, options?.props ?? {});
  apply(set, classes, [made, { native, props }]);
  return made;
}

/** `ctx.facets` of an object. */
export function facetsOf(native: NativeFacets, object: ObjectAddress): object {
  return bindingObject("DurableObjectFacets", {
    get: (name: string, startup: () => unknown) =>
      stubOf(native.get(name, async () => startedWith((await startup()) as Startup, object))),
    abort: (name: string, reason: unknown) => native.abort(name, reason),
    delete: (name: string) => native.delete(name),
    clone: (source: string, target: string) => native.clone(source, target),
  });
}

interface Startup {
  class?: unknown;
  id?: unknown;
}

function startedWith({ class: given, id }: Startup, object: ObjectAddress): object {
  const found = typeof given === "function" ? apply(get, classes, [given]) : undefined;
  if (found === undefined)
    throw new NativeTypeError(
      "Expected a class of ctx.exports for the class of a facet, such as ctx.exports.MyClass.",
    );
  const { native, props } = found as { native: NativeClass; props: unknown };
  const own = idOf(id, object);
  const facet: FacetOptions = { props, hasTextId: own.text !== undefined };
  return { class: native({ props: { object: own.address, facet } }), id: own.text ?? own.address.id };
}

function idOf(id: unknown, object: ObjectAddress): { address: ObjectAddress; text?: string } {
  if (id === undefined) return { address: object };
  if (typeof id === "string") return { address: object, text: id };
  if (!isObjectId(id))
    throw new NativeTypeError("Expected a DurableObjectId or a text for the id of a facet.");
  const { name, jurisdiction } = id as DurableObjectId;
  const { name: _name, jurisdiction: _jurisdiction, ...rest } = object;
  return {
    address: {
      ...rest,
      id: hexOf(id),
      ...(name !== undefined && { name }),
      ...(jurisdiction !== undefined && { jurisdiction }),
    },
  };
}

function stubOf(native: NativeFacet): object {
  const property = (path: readonly string[]): unknown =>
    remoteProperty(
      (key) => property([...path, key]),
      (args) => native.selvedgeCall(neededRun(), path, carry(args)),
      async () => native.selvedgeCall(neededRun(), path, null),
    );
  return bindingObject("Fetcher", {
    fetch: async (input: RequestInfo | URL, init?: RequestInit) =>
      native.fetch(new NativeRequest(input as RequestInfo, init), withMetadata({ selvedgeRun: neededRun() })),
    [wildcard]: (key: string) => property([key]),
  });
}

/** The methods of a facet's storage for alarms: as in workerd, only the object itself has one. */
export function refuseAlarms(
  storage: object,
  define: (target: object, name: string, value: unknown) => void,
): void {
  for (const name of ["setAlarm", "getAlarm", "deleteAlarm"])
    define(storage, name, async () => {
      throw new Error("Facets currently cannot set alarms.");
    });
}

import { env } from "cloudflare:workers";
import { countCall } from "../../../sandbox/worker/concurrency.ts";
import { noteStub, type KeptHost } from "../../../sandbox/objects/worker/kept-hosts.ts";
import { currentRun, fetchObject, keptHosts } from "../../../sandbox/worker/run.ts";
import {
  bindingObject,
  connect,
  remoteProperty,
  savedMethod,
  wildcard,
} from "../../runtime/worker/binding-object.ts";
import { carry } from "../../runtime/worker/carry.ts";
import type { BindingFetch } from "../../runtime/worker/env.ts";
import { hexOf, IdMaker, type DurableObjectId } from "./ids.ts";

const { stringify } = JSON;
const { create } = Object;
const [NativeError, NativeTypeError, toText] = [Error, TypeError, String];

const { apply } = Reflect;

/** The system worker's entrypoint (sandbox/worker/objects.ts). */
interface Objects {
  fetch(request: RequestInfo | URL, init: RequestInit): Promise<Response>;
  call(
    given: [run: string, binding: string, reference: string, path: readonly string[], args: unknown],
  ): Promise<unknown>;
  /** The stub of an object's host, through which further calls may go. */
  host(given: [run: string, binding: string, reference: string]): Promise<object | null | undefined>;
}

interface Binding {
  name: string;
  namespace_id?: string;
}

/** Locations that a script can ask for. They are validated but change nothing, because there is one location here. */
const jurisdictions = ["eu", "fedramp", "us"];
const locations = ["wnam", "enam", "sam", "weur", "eeur", "apac", "oc", "afr", "me"];

/** A binding to a namespace of Durable Objects. */
export function objectNamespace(_call: BindingFetch, { name, namespace_id }: Binding): object {
  // While a new upload is tried out, its namespace may have no id yet.
  const objects = (env as Record<string, unknown>)[name] as Objects;
  // Saved, because a script may replace them on the prototypes, and would get this stub and tokens as arguments.
  const { fetch } = objects;
  noteStub(objects);
  const [call, host] = [savedMethod(objects, "call"), savedMethod(objects, "host")];
  const send: Objects["fetch"] = (request, init) => apply(fetch, objects, [request, init]);
  // Calls can be made on the result before it is there.
  const callObject: Objects["call"] = (given) =>
    apply(call ?? objects.call, objects, [given]) as Promise<unknown>;
  const askHost: Objects["host"] = async (given) => apply(host ?? objects.host, objects, [given]);
  return membersOf({ name, send, call: callObject, host: askHost }, namespace_id ?? "", undefined);
}

interface Bound extends Pick<Objects, "call" | "host"> {
  name: string;
  send: Objects["fetch"];
}

function membersOf(binding: Bound, namespace: string, jurisdiction: string | undefined): object {
  const ids = new IdMaker(namespace, jurisdiction);
  const get = (id: unknown, options: unknown): object => {
    checkOptions(options);
    return stubOf(binding, ids.checked(id));
  };
  return {
    newUniqueId(options?: { jurisdiction?: unknown }): DurableObjectId {
      const asked = options?.jurisdiction;
      if (asked === undefined || asked === null) return ids.unique();
      if (jurisdiction !== undefined && asked !== jurisdiction)
        throw new NativeTypeError(
          "newUniqueId called with a jurisdiction that differs from that of the subnamespace",
        );
      return new IdMaker(namespace, known("jurisdiction", asked, jurisdictions)).unique();
    },
    idFromName: (text: unknown) => ids.fromName(toText(text)),
    idFromString: (text: unknown) => ids.fromText(toText(text)),
    get,
    getByName: (text: unknown, options?: unknown) => get(ids.fromName(toText(text)), options),
    jurisdiction(asked?: unknown) {
      const next = asked === undefined ? undefined : known("jurisdiction", asked, jurisdictions);
      return bindingObject("DurableObjectNamespace", membersOf(binding, namespace, next));
    },
  };
}

function checkOptions(options: unknown): void {
  if (options === undefined || options === null) return;
  const { locationHint, jurisdiction, routingMode } = options as Record<string, unknown>;
  if (locationHint !== undefined) known("locationHint", locationHint, locations);
  if (jurisdiction !== undefined) known("jurisdiction", jurisdiction, jurisdictions);
  if (routingMode !== undefined) known("routingMode", routingMode, ["primary-only"]);
}

function known(what: string, given: unknown, allowed: readonly string[]): string {
  for (let i = 0; i < allowed.length; i++) if (allowed[i] === given) return allowed[i]!;
  throw new NativeTypeError(`Expected ${what} to be one of ${allowed.join(", ")}`);
}

/** A stub of an object: its `fetch`, and the methods and properties of its class. */
function stubOf({ name: binding, send, call: callObject, host }: Bound, id: DurableObjectId): object {
  const { name, jurisdiction } = id;
  const hex = hexOf(id);
  const reference = stringify({ __proto__: null, id: hex, name, jurisdiction });
  const key = `${binding} ${reference}`;
  const keptHost = (): KeptHost | undefined =>
    keptHosts()?.of(key, async () => host([neededRun(), binding, reference]));
  const failed = (error: unknown): void => keptHosts()?.failed(key, error);
  const call = (path: readonly string[], args: unknown): Promise<unknown> =>
    (keptHost()?.call ?? callObject)([neededRun(), binding, reference, path, args]);
  const watched = async <T>(result: Promise<T>): Promise<T> => {
    try {
      return await result;
    } catch (error) {
      failed(error);
      throw error;
    }
  };
  const property = (path: readonly string[]): unknown =>
    remoteProperty(
      (next) => property([...path, next]),
      (args) => countCall(neededRun(), () => call(path, carry(args)), failed),
      async () => watched(call(path, null)),
    );
  const sendFetch: Objects["fetch"] = (request, init) => (keptHost()?.fetch ?? send)(request, init);
  const members = create(null) as Record<PropertyKey, unknown>;
  members["id"] = id;
  members["name"] = name;
  members["fetch"] = (input: RequestInfo | URL, init?: RequestInit) =>
    fetchObject({ send: sendFetch, failed }, { binding, reference }, input, init);
  members["connect"] = connect;
  members[wildcard] = (member: string) => property([member]);
  return bindingObject("DurableObject", members);
}

function neededRun(): string {
  const run = currentRun();
  if (run === undefined)
    throw new NativeError("Durable Objects can be called only while handling a request.");
  return run;
}

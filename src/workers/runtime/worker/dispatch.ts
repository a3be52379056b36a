import { env } from "cloudflare:workers";
import { fetchDispatched } from "../../../sandbox/worker/run.ts";
import type { Dispatch, DispatchOptions } from "../dispatch.ts";
import { connect } from "./binding-object.ts";
import type { BindingFetch } from "./env.ts";

const { apply } = Reflect;

const known: Readonly<Record<string, readonly string[]>> = {
  options: ["limits", "outbound"],
  limits: ["cpuMs", "subRequests"],
};

interface Binding {
  name: string;
  outbound?: { params?: readonly { name: string }[] };
}

/** A binding to a dispatch namespace: `get` returns a stub of a customer's script, which is looked up on fetch. */
export function dispatchNamespace(_call: BindingFetch, binding: Binding): object {
  const { name } = binding;
  const stub = (env as Record<string, unknown>)[name] as Fetcher;
  const { fetch } = stub; // saved, because a script may replace it on the prototype
  const send = (request: RequestInfo | URL, init: RequestInit): Promise<Response> =>
    apply(fetch, stub, [request, init]) as Promise<Response>;
  return {
    get(script: string, args: object = {}, options: DispatchOptions = {}) {
      if (typeof script !== "string")
        throw new TypeError(`Expected the name of a script as a string but received ${typeof script}`);
      if (Object.keys(args).length > 0)
        throw new TypeError("Arguments of a dispatched script are not supported: expected {}");
      refuseUnknown("options", options);
      const { limits, outbound } = options;
      if (limits !== undefined) checkLimits(limits);
      if (outbound !== undefined) checkOutbound(outbound, binding);
      const chosen: Dispatch = { script, ...(limits && { limits }) };
      return {
        fetch: (input: RequestInfo | URL, init?: RequestInit) =>
          fetchDispatched(send, name, input, init, chosen, outbound),
        connect,
      };
    },
  };
}

function checkLimits(limits: Record<string, unknown>): void {
  refuseUnknown("limits", limits);
  for (const [name, value] of Object.entries(limits)) {
    if (value !== undefined && !(typeof value === "number" && value >= 0))
      throw new TypeError(
        `Expected limits.${name} to be a number of at least 0 but received ${JSON.stringify(value)}`,
      );
  }
}

function checkOutbound(values: object, { outbound }: Binding): void {
  const declared = outbound?.params?.map(({ name }) => name);
  for (const name of Object.keys(values)) {
    if (outbound === undefined)
      throw new TypeError(
        `The outbound parameter "${name}" was given, but the binding names no outbound script.`,
      );
    if (declared?.includes(name) === false)
      throw new TypeError(
        `The outbound parameter "${name}" is not one of the binding's: ${declared.join(", ")}.`,
      );
  }
}

function refuseUnknown(what: string, value: object): void {
  for (const key of Object.keys(value)) {
    if (!known[what]!.includes(key))
      throw new TypeError(`Unknown ${what} "${key}". Expected one of ${known[what]!.join(", ")}`);
  }
}

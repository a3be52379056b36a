import { MalformedError, readObject } from "../../sandbox/gateway/cell-messages.ts";
import type { Dispatch } from "./dispatch.ts";

/** Parses the options of a dispatch (worker/dispatch.ts). Code of the script can have written them. */
export function readDispatch(text: string): Dispatch {
  const { script, limits } = readObject(text, "the dispatch");
  if (typeof script !== "string") throw new MalformedError("Expected the name of a script to dispatch to.");
  if (limits === undefined) return { script };
  const given = (limits ?? {}) as Record<string, unknown>;
  const limit = (name: "cpuMs" | "subRequests"): number => {
    const value = given[name] ?? Infinity;
    // NaN would be no limit, because every comparison with it is false.
    if (typeof value === "number" && value >= 0) return value;
    throw new MalformedError(`Expected a number of at least 0 for limits.${name}.`);
  };
  return { script, limits: { cpuMs: limit("cpuMs"), subRequests: limit("subRequests") } };
}

/** Parameters of the outbound script; undefined without any. */
export const readOutbound = (text: string): Record<string, unknown> | undefined =>
  text === "" ? undefined : readObject(text, "the outbound parameters");

import { hopsMax } from "../../edge/http/via.ts";
import type { RunContext } from "../runtime/run-context.ts";
import type { ObjectRunServices } from "./acting.ts";

/** Number of calls that a run may make in its cell before it must ask the gateway again, which counts them. */
const lotMax = 100;

/**
 * RunMetadata.calls for a run of an object; undefined if each of its calls has to pass the gateway. An object that is
 * called in the cell calls others through the gateway, which counts how deep calls go.
 */
export function localCallsOf(
  { generation, runtime }: Pick<ObjectRunServices, "generation" | "runtime">,
  { root, depth, limits, span }: RunContext,
): string | undefined {
  if (span?.isSampled === true || root.hops + depth >= hopsMax) return undefined;
  const left = runtime.treeSubRequests - (root.tree?.subrequests ?? 0);
  return `${generation()} ${Math.max(0, Math.min(lotMax, limits.subRequests, left))}`;
}

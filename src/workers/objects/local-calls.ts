import { hopsMax } from "../../edge/http/via.ts";
import type { RunContext, RunLimits } from "../runtime/run-context.ts";
import type { ObjectRunServices } from "./acting.ts";

/** Number of calls that a run may make in its cell before it must ask the gateway again, which counts them. */
const lotMax = 100;

/** RunMetadata.calls for a run of an object; undefined if each of its calls has to pass the gateway. */
export function localCallsOf(
  { generation, runtime }: Pick<ObjectRunServices, "generation" | "runtime">,
  { root, depth, limits, span }: RunContext,
): string | undefined {
  const depthLeft = hopsMax - root.hops - depth;
  if (span?.isSampled === true || depthLeft <= 0) return undefined;
  const left = runtime.treeSubRequests - (root.tree?.subrequests ?? 0);
  return `${generation()} ${Math.max(0, Math.min(lotOf(limits), left))} ${depthLeft}`;
}

/** ObjectGrant.lot for runs with these limits. */
export const lotOf = ({ subRequests }: RunLimits): number => Math.min(lotMax, subRequests);

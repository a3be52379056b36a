import { Edge } from "./listener.ts";
import type { EdgeOptions } from "./options.ts";
import { systemLookUp, type LookUp } from "../origin/resolve.ts";

export { AddressPolicy, type PrivateNetworks, type Verdict } from "../origin/address-policy.ts";
export { VisitorError, visitorErrors } from "../http/errors.ts";
export type { EdgeHandler, EdgeHttpRequest } from "./handlers.ts";
export type { Edge } from "./listener.ts";
export type { EdgeOptions } from "./options.ts";
export { edgeDefaults, type EdgeSettings } from "../http/settings.ts";
export {
  EdgeSnapshot,
  EdgeZone,
  type HostEntry,
  type OriginRule,
  type OriginTarget,
} from "../configuration/snapshot.ts";

/**
 * Creates an edge over a snapshot that the caller updates. Names outside it are resolved by the system,
 * unless `lookUp` is given.
 */
export function createEdge(options: Omit<EdgeOptions, "lookUp"> & { lookUp?: LookUp }): Edge {
  return new Edge({ lookUp: systemLookUp(), ...options });
}

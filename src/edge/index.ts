import { Edge, type EdgeOptions } from "./listener.ts";
import { systemLookUp, type LookUp } from "./resolve.ts";

export { AddressPolicy, type PrivateNetworks, type Verdict } from "./address-policy.ts";
export { VisitorError, visitorErrors } from "./errors.ts";
export type { EdgeHandler, EdgeVisit } from "./handlers.ts";
export type { Edge, EdgeOptions } from "./listener.ts";
export { edgeDefaults, type EdgeSettings } from "./settings.ts";
export { EdgeSnapshot, EdgeZone, type HostEntry, type OriginRule, type OriginTarget } from "./snapshot.ts";

/** An edge over a snapshot that someone else keeps current. Names outside it are the system's resolver's, unless another is given. */
export function createEdge(options: Omit<EdgeOptions, "lookUp"> & { lookUp?: LookUp }): Edge {
  return new Edge({ lookUp: systemLookUp(), ...options });
}

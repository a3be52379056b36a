import type { Operation } from "./operation.ts";

/** The services that all of these operations use. */
type UsedBy<O> = (O extends Operation<infer S> ? (services: S) => void : never) extends (
  services: infer All,
) => void
  ? All
  : never;

/** Joins operations that use different services. */
export const together = <O extends Operation>(operations: readonly O[]): readonly Operation<UsedBy<O>>[] =>
  operations as readonly Operation[] as readonly Operation<UsedBy<O>>[];

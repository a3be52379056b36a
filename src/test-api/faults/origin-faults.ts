import { z } from "zod";
import type { FaultRules, AppliedFault } from "./fault-rules.ts";
import { milliseconds, selection } from "./fault-rules.ts";

const bytes = z.int().min(0).max(1_000_000_000);

/** A fault of an origin, or of a server that a script asks. */
export const OriginFaultSchema = z.strictObject({
  /** The host that the request names, or an address of a connection. */
  host: z.string().max(300).optional(),
  address: z.string().max(100).optional(),
  ...selection,
  then: z.union([
    z.enum(["refuse", "reset", "hang", "tls-expired", "tls-wrong-host"]),
    z.strictObject({ status: z.int().min(200).max(599) }),
    z.strictObject({ latencyMs: milliseconds, jitterMs: milliseconds.optional() }),
    z.strictObject({ bytesPerSecond: z.int().min(1).max(1_000_000_000) }),
    z.strictObject({ cutAfterBytes: bytes }),
    z.strictObject({ damageByte: bytes }),
  ]),
});
export type OriginFault = z.output<typeof OriginFaultSchema>;

/** The fault of a request to an origin. */
export function applyOriginFault(
  faults: FaultRules<OriginFault>,
  asked: { url: URL; address: string; isVerified: boolean },
): AppliedFault<OriginFault> | undefined {
  const isOf = ({ host, address, then }: OriginFault): boolean =>
    (host === undefined || host.toLowerCase() === asked.url.hostname || host === asked.url.host) &&
    (address === undefined || address === asked.address) &&
    // A wrong certificate matters only where the edge verifies certificates.
    (typeof then !== "string" || !then.startsWith("tls-") || asked.isVerified);
  return faults.apply(isOf);
}

import { Resolver } from "node:dns/promises";
import type { Zone } from "./zone.ts";

/** How an installation finds out that a pending zone is its owner's to serve. */
export interface ActivationPolicy {
  /** Whether the zone's owner has pointed it here. */
  check(zone: Zone): Promise<boolean>;
  /** Seconds that must pass between two checks of one zone. */
  intervalSeconds: number;
}

/** For laboratories and CI, where nobody else is to be convinced. */
export const staticActivation: ActivationPolicy = { check: async () => true, intervalSeconds: 0 };

/** Asks the DNS: a full zone's NS records must name our servers, a partial zone must show its key in a TXT record. */
export function dnsActivation(
  resolverAddresses: readonly string[],
  intervalSeconds: number,
): ActivationPolicy {
  const resolver = new Resolver({ timeout: 3000, tries: 2 });
  if (resolverAddresses.length > 0) resolver.setServers(resolverAddresses);
  return {
    intervalSeconds,
    async check(zone) {
      try {
        if (zone.type === "partial") {
          const texts = await resolver.resolveTxt(`cloudflare-verify.${zone.name}`);
          return texts.some((chunks) => chunks.join("") === zone.verificationKey);
        }
        const found = new Set((await resolver.resolveNs(zone.name)).map((name) => name.toLowerCase()));
        return zone.nameServers.every((name) => found.has(name));
      } catch {
        return false; // no such records yet, or the resolver did not answer: the next check may
      }
    },
  };
}

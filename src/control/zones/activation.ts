import { Resolver } from "node:dns/promises";
import { verificationName } from "./authority.ts";
import type { Zone } from "./zone.ts";

/** How an installation decides that a pending zone can become active. */
export interface ActivationPolicy {
  /** Whether the zone's owner has pointed the domain to this installation. */
  check(zone: Zone): Promise<boolean>;
  /** Minimum seconds between two checks of one zone. */
  intervalSeconds: number;
}

/** Activates every zone at once, for laboratories and CI. */
export const staticActivation: ActivationPolicy = { check: async () => true, intervalSeconds: 0 };

/**
 * Checks the public DNS: the NS records of a full zone must name our servers, and a partial zone must publish
 * its key in a TXT record.
 */
export function dnsActivation(
  resolverAddresses: readonly string[],
  intervalSeconds: number,
): ActivationPolicy {
  const resolver = resolverOf(resolverAddresses);
  const isShown = dnsProof(resolverAddresses);
  return {
    intervalSeconds,
    async check(zone) {
      if (zone.type === "partial") return isShown(zone.name, zone.verificationKey ?? "");
      try {
        const found = new Set((await resolver.resolveNs(zone.name)).map((name) => name.toLowerCase()));
        return zone.nameServers.every((name) => found.has(name));
      } catch {
        return false; // no such records yet, or no answer from the resolver: a later check may succeed
      }
    },
  };
}

/** Whether the public DNS has a zone's verification key in the TXT record that its owner must publish. */
export type Proof = (zoneName: string, key: string) => Promise<boolean>;

export function dnsProof(resolverAddresses: readonly string[]): Proof {
  const resolver = resolverOf(resolverAddresses);
  return async (zoneName, key) => {
    try {
      const texts = await resolver.resolveTxt(verificationName(zoneName));
      return texts.some((chunks) => chunks.join("") === key);
    } catch {
      return false; // no such record, or no answer from the resolver
    }
  };
}

function resolverOf(addresses: readonly string[]): Resolver {
  const resolver = new Resolver({ timeout: 3000, tries: 2 });
  if (addresses.length > 0) resolver.setServers(addresses);
  return resolver;
}

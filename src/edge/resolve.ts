import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { LRUCache } from "lru-cache";
import { visitorErrors } from "./errors.ts";
import type { EdgeSnapshot, OriginTarget } from "./snapshot.ts";

export type LookUp = (name: string) => Promise<string[]>;

const cacheMs = 10_000;
const staleMs = 300_000;
const hopsMax = 8;

/** Addresses of names outside our zones: the system's resolver, kept a moment, and longer while it fails. */
export function systemLookUp(): LookUp {
  const cache = new LRUCache<string, { addresses: string[]; atMs: number }>({ max: 10_000, ttl: staleMs });
  return async (name) => {
    const known = cache.get(name);
    if (known !== undefined && Date.now() - known.atMs < cacheMs) return known.addresses;
    try {
      const addresses = (await lookup(name, { all: true, order: "verbatim" })).map((each) => each.address);
      cache.set(name, { addresses, atMs: Date.now() });
      return addresses;
    } catch (error) {
      if (known !== undefined) return known.addresses;
      throw error;
    }
  };
}

/** The addresses that a record's targets lead to. Names in our own zones are answered from memory. */
export async function resolveTargets(
  targets: readonly OriginTarget[],
  snapshot: EdgeSnapshot,
  lookUp: LookUp,
  hops = 0,
): Promise<string[]> {
  const alias = targets.find((target) => target.type === "CNAME");
  if (alias === undefined) return targets.map((target) => target.content);
  return resolveName(alias.content, snapshot, lookUp, hops + 1);
}

export async function resolveName(
  name: string,
  snapshot: EdgeSnapshot,
  lookUp: LookUp,
  hops = 0,
): Promise<string[]> {
  if (isIP(name) !== 0) return [name];
  if (hops > hopsMax) throw visitorErrors.noOrigin();
  const own = snapshot.findZone(name)?.resolve(name);
  if (own !== undefined && own.targets.length > 0) return resolveTargets(own.targets, snapshot, lookUp, hops);
  try {
    return await lookUp(name);
  } catch (error) {
    throw visitorErrors.noOrigin(error);
  }
}

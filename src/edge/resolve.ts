import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { LRUCache } from "lru-cache";
import { visitorErrors } from "./errors.ts";
import type { EdgeSnapshot, OriginTarget } from "./snapshot.ts";

export type LookUp = (name: string) => Promise<string[]>;

const cacheMs = 10_000;
const staleMs = 300_000;
/** How long a failure is an answer: a name that is down must not cost a question per request. */
const failureMs = 1000;
const deadlineMs = 10_000;
const hopsMax = 8;

const askSystem: LookUp = async (name) =>
  (await lookup(name, { all: true, order: "verbatim" })).map((each) => each.address);

/**
 * Addresses of names outside our zones: the system's resolver, kept a moment, and longer while it fails or is slow. A name
 * is asked for once at a time: the system's resolver has few threads, and one slow name must not take them all.
 */
export function systemLookUp(ask: LookUp = askSystem, answerWithinMs = deadlineMs): LookUp {
  const cache = new LRUCache<string, { addresses: string[]; atMs: number }>({ max: 10_000, ttl: staleMs });
  const failures = new LRUCache<string, { error: unknown }>({ max: 10_000, ttl: failureMs });
  const underWay = new Map<string, Promise<string[]>>();
  const question = (name: string): Promise<string[]> => {
    let answer = underWay.get(name);
    if (answer === undefined) {
      answer = ask(name)
        .then((addresses) => {
          cache.set(name, { addresses, atMs: Date.now() });
          failures.delete(name);
          return addresses;
        })
        .finally(() => underWay.delete(name));
      underWay.set(name, answer);
    }
    return answer;
  };
  return async (name) => {
    const known = cache.get(name);
    if (known !== undefined && Date.now() - known.atMs < cacheMs) return known.addresses;
    try {
      const failure = failures.get(name);
      if (failure !== undefined) throw failure.error;
      return await within(answerWithinMs, question(name), name);
    } catch (error) {
      if (!failures.has(name)) failures.set(name, { error });
      if (known !== undefined) return known.addresses;
      throw error;
    }
  };
}

async function within<T>(ms: number, answer: Promise<T>, name: string): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer for ${name} within ${ms} ms`)), ms);
  try {
    return await Promise.race([answer, promise]);
  } finally {
    clearTimeout(timer);
  }
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

import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { LRUCache } from "lru-cache";
import { VisitorError, visitorErrors } from "../http/errors.ts";
import type { EdgeSnapshot, OriginTarget } from "../configuration/snapshot.ts";
import { entriesMax } from "../../platform/util/loading-cache.ts";
import { clock } from "../../platform/timers/clock.ts";
import { untested, type OriginsUnderTest } from "./under-test.ts";

/** Finds the addresses of a name. Rejects if there are none. */
export type LookUp = (name: string) => Promise<string[]>;

const cacheMs = 10_000;
const staleMs = 300_000;
/** How long failures are cached, so that a broken name does not cost a query per request. */
const failureMs = 1000;
const deadlineMs = 10_000;
const hopsMax = 8;

/**
 * Names below localhost are this machine (RFC 6761, 6.3), which some system resolvers do not know. Hosts of
 * scripts are such names.
 */
const askSystem: LookUp = async (name) =>
  /(^|\.)localhost\.?$/.test(name)
    ? ["127.0.0.1", "::1"]
    : (await lookup(name, { all: true, order: "verbatim" })).map((each) => each.address);

/**
 * Resolves names outside our zones with the system's resolver. Results are cached briefly, and longer while
 * the resolver fails or is slow. Each name is resolved once at a time: the resolver has few threads, and one
 * slow name must not occupy them all.
 */
export function systemLookUp(
  ask: LookUp = askSystem,
  answerWithinMs = deadlineMs,
  underTest: OriginsUnderTest = untested,
): LookUp {
  const cache = new LRUCache<string, { addresses: string[]; atMs: number }>({
    ...entriesMax(10_000),
    ttl: staleMs,
  });
  const failures = new LRUCache<string, { error: unknown }>({ ...entriesMax(10_000), ttl: failureMs });
  const inFlight = new Map<string, Promise<string[]>>();
  const question = (name: string): Promise<string[]> => {
    let answer = inFlight.get(name);
    if (answer === undefined) {
      answer = ask(name)
        .then((addresses) => {
          cache.set(name, { addresses, atMs: clock.now() });
          failures.delete(name);
          return addresses;
        })
        .finally(() => inFlight.delete(name));
      inFlight.set(name, answer);
    }
    return answer;
  };
  return async (name) => {
    const { hooks } = underTest;
    const answered = hooks === undefined ? undefined : await hooks.lookUp(name);
    if (answered !== undefined) return answered;
    const known = cache.get(name);
    if (known !== undefined && clock.now() - known.atMs < cacheMs) return known.addresses;
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

/**
 * The addresses of a record's targets. Names in the account's own zones are resolved from memory; others as
 * from outside, because the origins behind another account's proxied names are private to it.
 */
export async function resolveTargets(
  targets: readonly OriginTarget[],
  snapshot: EdgeSnapshot,
  lookUp: LookUp,
  accountId?: string,
  hops = 0,
): Promise<string[]> {
  const alias = targets.find((target) => target.type === "CNAME");
  if (alias === undefined) return targets.map((target) => target.content);
  return resolveName(alias.content, snapshot, lookUp, accountId, hops + 1);
}

export async function resolveName(
  name: string,
  snapshot: EdgeSnapshot,
  lookUp: LookUp,
  accountId?: string,
  hops = 0,
): Promise<string[]> {
  if (isIP(name) !== 0) return [name];
  if (hops > hopsMax) throw visitorErrors.noOrigin();
  const zone = snapshot.findZone(name);
  const own = zone?.configuration?.accountId === accountId ? zone?.resolve(name) : undefined;
  if (own !== undefined && own.targets.length > 0)
    return resolveTargets(own.targets, snapshot, lookUp, accountId, hops);
  try {
    return await lookUp(name);
  } catch (error) {
    throw visitorErrors.noOrigin(error);
  }
}

/**
 * The addresses of a host that a script requests: from memory when it belongs to this installation, with the
 * `targets` of its records.
 */
export async function addressesOf(
  host: string,
  targets: readonly OriginTarget[] | undefined,
  lookUp: LookUp,
): Promise<string[]> {
  if (isIP(host) !== 0) return [host];
  try {
    const alias = targets?.find(({ type }) => type === "CNAME")?.content;
    if (targets !== undefined && targets.length > 0 && alias === undefined)
      return targets.map(({ content }) => content);
    return await lookUp(alias ?? host);
  } catch (error) {
    const message = `The name ${JSON.stringify(host)} has no address.`;
    throw new VisitorError(530, 1016, "DNS error", message, { cause: error });
  }
}

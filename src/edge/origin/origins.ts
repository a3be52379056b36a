import { isIPv6 } from "node:net";
import { LRUCache } from "lru-cache";
import type { AddressPolicy, Verdict, Who } from "./address-policy.ts";
import { originError, visitorErrors, VisitorError } from "../http/errors.ts";
import { CoarseClock } from "../origin-client/coarse-clock.ts";
import type { ClientLimits } from "../origin-client/connection.ts";
import type { OriginClient } from "../origin-client/exchange.ts";
import { OriginPool } from "../origin-client/pool.ts";
import type { OriginTls } from "../configuration/route.ts";
import type { EdgeSettings } from "../http/settings.ts";
import { entriesMax } from "../../platform/util/loading-cache.ts";
import { untested, type OriginsUnderTest } from "./under-test.ts";

const downMs = 10_000;

const refusals: Record<Exclude<Verdict, "allowed">, () => VisitorError> = {
  private: visitorErrors.privateOrigin,
  own_listener: visitorErrors.ownListener,
  invalid: visitorErrors.noOrigin,
};

/**
 * Connection pools to origins by tenant, address, port and TLS settings, and the addresses that recently
 * failed. Tenants share no pool: one whose origin never responds would use up the connections of the others.
 */
export class Origins {
  readonly #settings: EdgeSettings;
  readonly #policy: AddressPolicy;
  readonly #who: Who;
  readonly underTest: OriginsUnderTest;
  readonly #pools: LRUCache<string, OriginPool>;
  readonly #limits: ClientLimits;
  readonly #clock: CoarseClock;
  readonly #downUntilMs = new LRUCache<string, number>(entriesMax(10_000));

  constructor(
    settings: EdgeSettings,
    policy: AddressPolicy,
    who: Who = "origin",
    underTest: OriginsUnderTest = untested,
  ) {
    this.underTest = underTest;
    this.#settings = settings;
    this.#policy = policy;
    this.#who = who;
    this.#pools = new LRUCache({
      ...entriesMax(settings.originsMax),
      dispose: (pool) => pool.close(),
    });
    this.#limits = {
      connectTimeoutMs: settings.originConnectTimeoutMs,
      firstByteTimeoutMs: settings.originFirstByteTimeoutMs,
      idleTimeoutMs: settings.originIdleTimeoutMs,
      stallTimeoutMs: settings.visitorStallTimeoutMs,
      headBytesMax: settings.headerBytesMax * 2,
    };
    const { connectTimeoutMs, firstByteTimeoutMs, idleTimeoutMs, stallTimeoutMs } = this.#limits;
    this.#clock = new CoarseClock([connectTimeoutMs, firstByteTimeoutMs, idleTimeoutMs, stallTimeoutMs]);
  }

  /** The allowed addresses; those that recently failed come last. Throws when none is allowed. */
  choose(addresses: readonly string[], port: number): string[] {
    const allowed: string[] = [];
    let refusal: Exclude<Verdict, "allowed"> | undefined;
    for (const address of addresses) {
      const verdict = this.#policy.check(address, port, this.#who);
      if (verdict === "allowed") allowed.push(address);
      else refusal = verdict;
    }
    if (allowed.length === 0) throw refusals[refusal ?? "invalid"]();
    if (allowed.length === 1) return allowed;
    const isUp = (address: string): boolean => (this.#downUntilMs.get(key(address, port)) ?? 0) < Date.now();
    return [...allowed.filter(isUp), ...allowed.filter((address) => !isUp(address))];
  }

  /**
   * Tries each address in turn until a connection is made. Only a connection that was never established moves
   * on to the next address, and puts this one last for a while; all later errors are final.
   */
  async connect<T>(
    addresses: readonly string[],
    port: number,
    attempt: (address: string) => Promise<T>,
  ): Promise<T> {
    let failure: unknown;
    for (const address of addresses) {
      try {
        return await attempt(address);
      } catch (error) {
        failure = error;
        if (!neverConnected(error)) break;
        this.#downUntilMs.set(key(address, port), Date.now() + downMs);
      }
    }
    throw originError(failure);
  }

  /** The client for an address that `choose` has allowed. It connects to exactly this address. */
  client(tenant: string, address: string, port: number, tls?: OriginTls): OriginClient {
    const origin = key(address, port);
    const name =
      tls === undefined
        ? `${tenant} ${origin}`
        : `${tenant} ${origin} ${tls.isVerified ? "verified" : "any"} ${tls.servername}`;
    let pool = this.#pools.get(name);
    if (pool === undefined) {
      const { originSourceAddress: localAddress, originCa: ca, originConnectionsMax } = this.#settings;
      const to = { address, port, tls, localAddress, ca };
      pool = new OriginPool(to, this.#limits, originConnectionsMax, this.#clock);
      this.#pools.set(name, pool);
    }
    const { hooks } = this.underTest;
    if (hooks === undefined) return pool;
    return hooks.client(pool, { address, port, tls, who: this.#who, limits: this.#limits });
  }

  /** Connections to origins that are open, and requests that wait for one. */
  get connections(): { open: number; waiting: number } {
    const loads = [...this.#pools.values()].map((pool) => pool.load);
    return {
      open: loads.reduce((sum, { open }) => sum + open, 0),
      waiting: loads.reduce((sum, { waiting }) => sum + waiting, 0),
    };
  }

  close(): void {
    for (const pool of this.#pools.values()) pool.destroy();
  }
}

/** Whether an attempt failed before a byte of the request was sent. */
export function neverConnected(error: unknown): boolean {
  if (error instanceof VisitorError) return error.code === 525 || error.code === 526;
  const { code, syscall } = (error ?? {}) as { code?: string; syscall?: string };
  return syscall === "connect" || code === "UND_ERR_CONNECT_TIMEOUT";
}

const key = (address: string, port: number): string =>
  isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`;

import { isIPv6 } from "node:net";
import { LRUCache } from "lru-cache";
import type { buildConnector, Pool } from "undici";
import type { AddressPolicy, Verdict } from "./address-policy.ts";
import { originError, tlsError, visitorErrors, VisitorError } from "./errors.ts";
import type { OriginTls } from "./route.ts";
import type { EdgeSettings } from "./settings.ts";

const downMs = 10_000;

const refusals: Record<Exclude<Verdict, "allowed">, () => VisitorError> = {
  private: visitorErrors.privateOrigin,
  own_listener: visitorErrors.ownListener,
  invalid: visitorErrors.noOrigin,
};

/** Connections to origins, kept per address, port and manner of TLS, and which addresses did not answer lately. */
export class Origins {
  readonly #settings: EdgeSettings;
  readonly #policy: AddressPolicy;
  readonly #who: "origin" | "script";
  readonly #pools: LRUCache<string, Pool>;
  readonly #downUntilMs = new LRUCache<string, number>({ max: 10_000 });

  /** `who` says whose wish it is to connect: a zone's record, or a script's code. */
  constructor(settings: EdgeSettings, policy: AddressPolicy, who: "origin" | "script" = "origin") {
    this.#settings = settings;
    this.#policy = policy;
    this.#who = who;
    this.#pools = new LRUCache({
      max: settings.originsMax,
      // A pool that falls out finishes what it is doing.
      dispose: (pool) => void pool.close().catch(() => {}),
    });
  }

  /** The addresses that may be connected to, those that answered lately first. Throws when none may. */
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
   * Makes an attempt at each address in turn until one can be connected to. The attempt answers for everything after
   * that: only a connection that never stood leads to the next address, and puts this one last for a while.
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

  /** The pool for an address that `choose` has just allowed; it connects to that very address. */
  async pool(address: string, port: number, tls?: OriginTls): Promise<Pool> {
    const origin = key(address, port);
    const name =
      tls === undefined ? origin : `${origin} ${tls.isVerified ? "verified" : "any"} ${tls.servername}`;
    let pool = this.#pools.get(name);
    if (pool === undefined) {
      // Loaded with the first request: a start that has none yet is a tenth cheaper.
      const undici = await import("undici");
      pool =
        this.#pools.get(name) ??
        new undici.Pool(`${tls === undefined ? "http" : "https"}://${origin}`, {
          connections: this.#settings.originConnectionsMax,
          connect: this.#connector(undici.buildConnector, tls),
          headersTimeout: this.#settings.originFirstByteTimeoutMs,
          bodyTimeout: this.#settings.originIdleTimeoutMs,
          keepAliveTimeout: 30_000,
          maxHeaderSize: this.#settings.headerBytesMax * 2,
          pipelining: 1,
          allowH2: false,
        });
      this.#pools.set(name, pool);
    }
    return pool;
  }

  #connector(build: typeof buildConnector, tls: OriginTls | undefined): buildConnector.connector {
    const { originConnectTimeoutMs: timeout, originCa: ca, originSourceAddress } = this.#settings;
    const verification =
      tls === undefined ? {} : { rejectUnauthorized: tls.isVerified, ...(ca === undefined ? {} : { ca }) };
    const connect = build({ timeout, allowH2: false, ...verification });
    const localAddress = originSourceAddress ?? null;
    if (tls === undefined) return (options, done) => connect({ ...options, localAddress }, done);
    const { servername } = tls;
    // The name is the zone's to say: undici would take the Host header's.
    return (options, done) =>
      connect({ ...options, localAddress, servername }, (...[error, socket]) =>
        error === null ? done(null, socket) : done(tlsError(error), null),
      );
  }

  async close(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.destroy()));
  }
}

/** Whether a failed attempt was over before a byte of the request was sent. */
export function neverConnected(error: unknown): boolean {
  if (error instanceof VisitorError) return error.code === 525 || error.code === 526;
  const { code, syscall } = (error ?? {}) as { code?: string; syscall?: string };
  return syscall === "connect" || code === "UND_ERR_CONNECT_TIMEOUT";
}

const key = (address: string, port: number): string =>
  isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`;

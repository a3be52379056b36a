import type { Pool } from "undici";
import type { Tracer } from "../../platform/tracing/spans/tracer.ts";
import type { EdgeSettings } from "../http/settings.ts";
import type { OriginTls, Path } from "../configuration/route.ts";
import { clientOf } from "../origin-client/of-dispatcher.ts";
import { signTarget } from "./relay-token.ts";

/** A node that requests may be sent through. */
export interface Relay {
  name: string;
  /** URL of its edge listener. With https, requests share one HTTP/2 connection. */
  url: string;
}

/** The Host of requests between nodes; no zone has this name. */
export const relayHost = "relay.selvedge.internal";
/** A special target that only checks whether the relay responds. */
export const pingAddress = "ping";
export const relayHeaders = {
  target: "selvedge-relay-target",
  host: "selvedge-relay-host",
  /** Response header: how the relay failed. */
  failure: "selvedge-relay-failure",
} as const;

const pingIntervalMs = 10_000;

/** A failure of a relay, or of its connection to the origin. */
export class RelayError extends Error {
  /** Set when the relay could not connect, so the origin has received nothing. */
  readonly syscall: "connect" | undefined;

  constructor(failure: string) {
    super(`the relay responded: ${failure}`);
    this.syscall = failure === "unsent" ? "connect" : undefined;
  }
}

/** Other nodes of the installation as paths to origins. */
export class Relays {
  readonly list: readonly Relay[];
  readonly #secret: string;
  readonly #settings: EdgeSettings;
  readonly #tracer: Tracer | undefined;
  readonly #pools = new Map<Relay, Promise<Pool>>();
  /** Signed targets, renewed every few seconds. */
  readonly #tokens = new Map<string, { token: string; untilMs: number }>();

  /** With a tracer, each request carries its trace to the other node. */
  constructor(list: readonly Relay[], secret: string, settings: EdgeSettings, tracer?: Tracer) {
    this.#tracer = tracer;
    this.list = list;
    this.#secret = secret;
    this.#settings = settings;
  }

  async path(relay: Relay, address: string, port: number, tls: OriginTls | undefined): Promise<Path> {
    const client = clientOf(await this.#pool(relay));
    const token = this.#token(address, port, tls);
    return {
      client,
      address,
      tracer: this.#tracer,
      headers: ([name, host, ...others]) => [
        name!,
        relayHost,
        relayHeaders.host,
        host!,
        relayHeaders.target,
        token,
        ...others,
      ],
      failure: (_status, headers) => {
        const at = headers.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === relayHeaders.failure);
        return at < 0 ? undefined : new RelayError(headers[at + 1]!);
      },
    };
  }

  /** Whether a relay responds; also keeps its connection warm. */
  async ping(relay: Relay, timeoutMs: number): Promise<boolean> {
    try {
      const pool = await this.#pool(relay);
      const { statusCode, body } = await pool.request({
        method: "GET",
        path: "/",
        headers: { host: relayHost, [relayHeaders.target]: this.#token(pingAddress, 0, undefined) },
        signal: AbortSignal.timeout(timeoutMs),
      });
      await body.dump();
      return statusCode === 204;
    } catch {
      return false;
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#pools.values()].map(async (pool) => (await pool).destroy()));
  }

  #token(address: string, port: number, tls: OriginTls | undefined): string {
    const name = `${address} ${port} ${tls?.servername ?? ""} ${tls?.isVerified ?? ""}`;
    const nowMs = Date.now();
    let known = this.#tokens.get(name);
    if (known === undefined || known.untilMs < nowMs) {
      if (this.#tokens.size > 10_000) this.#tokens.clear();
      const token = signTarget({ address, port, tls }, this.#secret, nowMs);
      this.#tokens.set(name, (known = { token, untilMs: nowMs + 10_000 }));
    }
    return known.token;
  }

  async #pool(relay: Relay): Promise<Pool> {
    let pool = this.#pools.get(relay);
    if (pool === undefined) this.#pools.set(relay, (pool = this.#connect(relay)));
    return pool;
  }

  async #connect(relay: Relay): Promise<Pool> {
    const { buildConnector, Pool } = await import("undici");
    const { originCa: ca, originConnectTimeoutMs: timeout } = this.#settings;
    const isTls = relay.url.startsWith("https:");
    const trust = ca === undefined ? {} : { ca: [...ca] };
    const connect = buildConnector({ timeout, allowH2: isTls, preferH2: true, ...trust });
    return new Pool(relay.url, {
      ...(isTls
        ? { allowH2: true, connections: 2, pipelining: 100, h2Options: { pingInterval: pingIntervalMs } }
        : { connections: this.#settings.originConnectionsMax }),
      // The certificate is for the URL's name; undici would use the Host header.
      connect: (options, done) => {
        const { servername: _, ...own } = options;
        connect(own, done);
      },
      headersTimeout: this.#settings.originFirstByteTimeoutMs,
      bodyTimeout: this.#settings.originIdleTimeoutMs,
      keepAliveTimeout: 60_000,
      maxHeaderSize: this.#settings.headerBytesMax * 2,
    });
  }
}

/** Parses "NAME=URL" from the configuration. */
export function parseRelay(text: string): Relay {
  const [, name, url] = /^([a-z0-9-]{1,32})=(https?:\/\/[^/]+)\/?$/i.exec(text) ?? [];
  if (name === undefined || url === undefined || !URL.canParse(url))
    throw new Error(`Expected NAME=http(s)://HOST:PORT for relays but received ${JSON.stringify(text)}`);
  return { name, url };
}

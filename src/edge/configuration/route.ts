import type { Tracer } from "../../platform/tracing/spans/tracer.ts";
import type { OriginTls } from "../origin-client/connect.ts";
import type { OriginClient } from "../origin-client/exchange.ts";
import type { SslMode } from "../../control/zone-settings/ssl-mode.ts";

export type { OriginTls };

/** A path to an origin: a connection to one of its addresses, direct or through another node. */
export interface Path {
  client: OriginClient;
  /** The origin's address, for the access log. */
  address: string;
  /** Set if the path leads through another node, which continues the trace. */
  tracer?: Tracer | undefined;
  /** Converts the headers, a flat list that starts with Host, for this path. */
  headers?(headers: readonly string[]): string[];
  /** The failure of the path itself that a response reports, if it is not from the origin. */
  failure?(status: number, headers: readonly string[]): Error | undefined;
}

/** One of several concurrent attempts at a request. Only one may answer the visitor. */
export interface Race {
  started(abort: (why: Error) => void): void;
  /**
   * Called with the first byte of a response. Undefined when this attempt may answer, otherwise the reason
   * why not.
   */
  claim(status: number): Error | undefined;
}

/** Sends one request over one or more paths. Rejects with a visitor error while nothing has been sent. */
export interface EdgeRoute {
  /**
   * A request that is not repeatable moves to another path only while it is complete and no origin has
   * received it.
   */
  send(
    attempt: (path: Path, race: Race) => Promise<void>,
    isRepeatable: boolean,
    isWhole: () => boolean,
  ): Promise<void>;
}

/** Chooses paths for zones with smart routing. All `addresses` are allowed; the first is preferred. */
export interface Routing {
  route(zoneId: string, addresses: readonly string[], port: number, tls: OriginTls | undefined): EdgeRoute;
}

/** TLS to the origin for a visitor who came over TLS; requests over plain HTTP stay plain. */
export const originTls = (mode: SslMode, servername: string): OriginTls | undefined =>
  mode === "full" || mode === "strict" ? { servername, isVerified: mode === "strict" } : undefined;

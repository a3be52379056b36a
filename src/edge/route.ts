import type { Dispatcher } from "undici";

/** A way to an origin: a connection to one of its addresses, from here or through another node. */
export interface Path {
  dispatcher: Dispatcher;
  /** The headers, a flat list that begins with Host, as they are on this path. */
  headers?(headers: readonly string[]): string[];
  /** What an answer on this path means when it is not the origin's. */
  failure?(status: number, headers: Record<string, string | string[] | undefined>): Error | undefined;
}

/** One of several attempts at a request, of which only one may answer the visitor. */
export interface Race {
  started(abort: (why: Error) => void): void;
  /** Asked with the first byte of an answer: undefined when this attempt may pass it on, else why not. */
  claim(status: number): Error | undefined;
}

/** Sends one request on the path, or the paths, that it chooses. Rejects with a visitor error while nothing has been sent. */
export interface Route {
  /** A request that is not repeatable goes to another path only if it is whole still, and no origin has seen it. */
  send(
    attempt: (path: Path, race: Race) => Promise<void>,
    isRepeatable: boolean,
    isWhole: () => boolean,
  ): Promise<void>;
}

/** Chooses paths for the zones where smart routing is on. `addresses` may be connected to, the first of them first. */
export interface Routing {
  route(zoneId: string, addresses: readonly string[], port: number, tls: OriginTls | undefined): Route;
}

/** How an origin is spoken to over TLS. */
export interface OriginTls {
  servername: string;
  /** Whether its certificate must be valid for that name. */
  isVerified: boolean;
}

/** What a zone's setting `ssl` may be. */
export const sslModes = ["off", "flexible", "full", "strict"] as const;
export type SslMode = (typeof sslModes)[number];

/** How the origin is spoken to when the visitor came over TLS; a visitor's plain HTTP stays plain. */
export const originTls = (mode: SslMode, servername: string): OriginTls | undefined =>
  mode === "full" || mode === "strict" ? { servername, isVerified: mode === "strict" } : undefined;

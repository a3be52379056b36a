import type { Destination } from "../origin-client/connect.ts";
import type { ClientLimits } from "../origin-client/connection.ts";
import type { OriginClient } from "../origin-client/exchange.ts";
import type { Who } from "./address-policy.ts";

/** A destination of requests, as the test kit sees it. */
export interface Tested extends Pick<Destination, "address" | "port" | "tls"> {
  who: Who;
  limits: ClientLimits;
}

/** Replaces the internet in tests. */
export interface OriginHooks {
  /** The addresses of a name; undefined to ask the system's resolver. */
  lookUp(name: string): Promise<string[] | undefined>;
  /** Whether the test handles a script's request to this URL, so that its host needs no address. */
  answers(method: string, url: URL): boolean;
  /** The client to use in place of `client`. */
  client(client: OriginClient, to: Tested): OriginClient;
  /** Throws a visitor error for a WebSocket or a TCP socket that must not be opened. */
  connects(url: string, address: string): void;
}

/** The hooks of the test kit; undefined in production. */
export interface OriginsUnderTest {
  hooks: OriginHooks | undefined;
}

/** Without the test kit. */
export const untested: Readonly<OriginsUnderTest> = Object.freeze({ hooks: undefined });

/** An address that nothing listens on, for names that the test answers for (TEST-NET-1, RFC 5737). */
export const placeholder = "192.0.2.1";

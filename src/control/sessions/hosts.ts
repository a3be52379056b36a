import type { IncomingHttpHeaders } from "node:http";

const loopback = /^(?:localhost|(?:[a-z0-9-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** How a host may be used for the console: over plain HTTP, over TLS only, or not at all. */
export type HostUse = "loopback" | "known" | "unknown";

/** The host of a request without its port, in lower case. */
const hostOf = ({ host = "" }: IncomingHttpHeaders): string => host.replace(/:\d{1,5}$/, "").toLowerCase();

/**
 * Whether people may use the console under the host of a request. Other hosts are refused: a foreign name that
 * resolves to this listener would make a foreign page same-origin with it.
 */
export function hostUse(headers: IncomingHttpHeaders, hosts: ReadonlySet<string>): HostUse {
  const host = hostOf(headers);
  if (loopback.test(host)) return "loopback";
  return hosts.has(host) ? "known" : "unknown";
}

/** The header that only a page of this origin can send: the API grants no other origin any header. */
export const consoleHeader = "x-selvedge-dashboard";

/** Whether a request with a cookie comes from the console itself. */
export function isOwnPage(headers: IncomingHttpHeaders, hosts: ReadonlySet<string>): boolean {
  const site = headers["sec-fetch-site"];
  return (
    headers[consoleHeader] === "1" &&
    (site === undefined || site === "same-origin") &&
    hostUse(headers, hosts) !== "unknown"
  );
}

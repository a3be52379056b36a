import type { IncomingMessage } from "node:http";
import { sessionCookieNames } from "../../platform/dashboard/cookie-names.ts";

const names: ReadonlySet<string> = new Set(sessionCookieNames);
const common = "selvedge";

/**
 * Whether a pair of a Cookie header, or the value of Set-Cookie, is a session cookie of the console. Browsers send a
 * nameless cookie as its value alone, so "=name=value" in Set-Cookie would return as the cookie "name".
 */
export const isConsoleCookie = (pair: string): boolean =>
  pair.includes(common) && names.has(/^[\s=]*([^\s=][^=]*)=/.exec(pair)?.[1]?.trimEnd() ?? "");

/**
 * Removes the console's cookies from a visitor's request. Browsers send a host's cookies to all of its ports, so
 * scripts and origins at the edge would receive the session of the management API.
 */
export function removeConsoleCookies(request: Pick<IncomingMessage, "rawHeaders" | "headers">): void {
  const { rawHeaders } = request;
  for (let i = rawHeaders.length - 2; i >= 0; i -= 2) {
    if (rawHeaders[i]!.length !== 6 || !rawHeaders[i + 1]!.includes(common)) continue;
    if (rawHeaders[i]!.toLowerCase() !== "cookie") continue;
    const kept = without(rawHeaders[i + 1]!);
    if (kept === "") rawHeaders.splice(i, 2);
    else rawHeaders[i + 1] = kept;
  }
  const { cookie } = request.headers;
  if (cookie?.includes(common) !== true) return;
  const kept = without(cookie);
  if (kept === "") delete request.headers.cookie;
  else request.headers.cookie = kept;
}

const without = (cookie: string): string =>
  cookie
    .split(";")
    .filter((pair) => !isConsoleCookie(pair))
    .join(";")
    .trim();

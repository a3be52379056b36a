import type { IncomingHttpHeaders } from "node:http";
import { sessionCookieNames } from "../../platform/dashboard/cookie-names.ts";

const [secureName, plainName] = sessionCookieNames;
const valueForm = /^[\w-]{43}$/;

/** The cookie's value in a request; undefined without one. Prefers the cookie name that only secure pages can set. */
export function sessionCookie({ cookie }: IncomingHttpHeaders): string | undefined {
  if (cookie === undefined) return undefined;
  const values = new Map<string, string>();
  for (const pair of cookie.split(";")) {
    const at = pair.indexOf("=");
    const name = pair.slice(0, at).trim();
    if (at > 0 && !values.has(name)) values.set(name, pair.slice(at + 1).trim());
  }
  const value = values.get(secureName) ?? values.get(plainName);
  return value !== undefined && valueForm.test(value) ? value : undefined;
}

/** The header that sets the cookie. `isPlain` is for browsers that refuse a secure cookie on loopback. */
export const setCookie = (value: string, isPlain: boolean): string =>
  isPlain
    ? `${plainName}=${value}; HttpOnly; SameSite=Strict; Path=/`
    : `${secureName}=${value}; HttpOnly; Secure; SameSite=Strict; Path=/`;

/** The headers that remove both cookies. */
export const clearCookies: string[] = [
  `${secureName}=; HttpOnly; Secure; SameSite=Strict; Path=/; Max-Age=0`,
  `${plainName}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0`,
];

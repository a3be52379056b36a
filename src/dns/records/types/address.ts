import { isIPv4, isIPv6 } from "node:net";
import { plain } from "./type.ts";

export const A = plain("A", "a valid IPv4 address", (text) => (isIPv4(text) ? text : undefined));

export const AAAA = plain("AAAA", "a valid IPv6 address", (text) =>
  isIPv6(text) && !text.includes("%") ? canonicalIPv6(text) : undefined,
);

/** The canonical form of RFC 5952, which the URL parser produces. */
export const canonicalIPv6 = (text: string): string => new URL(`http://[${text}]`).hostname.slice(1, -1);

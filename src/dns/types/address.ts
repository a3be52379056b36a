import { isIPv4, isIPv6 } from "node:net";
import { dnsErrors } from "../errors.ts";
import type { RecordType } from "./type.ts";

export const A: RecordType = {
  parse({ content }) {
    const text = content?.trim() ?? "";
    if (!isIPv4(text)) throw dnsErrors.invalidContent("A", "a valid IPv4 address", content);
    return { content: text };
  },
};

export const AAAA: RecordType = {
  parse({ content }) {
    const text = content?.trim() ?? "";
    if (!isIPv6(text) || text.includes("%"))
      throw dnsErrors.invalidContent("AAAA", "a valid IPv6 address", content);
    return { content: canonicalIPv6(text) };
  },
};

/** The form of RFC 5952; the URL parser has exactly it. */
export const canonicalIPv6 = (text: string): string => new URL(`http://[${text}]`).hostname.slice(1, -1);

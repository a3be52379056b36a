import type { IncomingMessage } from "node:http";

/**
 * The base URL under which the caller reached this listener, such as `http://HOST:PORT`. It comes from the
 * caller's headers, so use it only in the response to that caller.
 */
export function baseUrl({ headers, socket }: IncomingMessage, scheme: "http" | "ws"): string {
  const isSecure = headers["x-forwarded-proto"] === "https" || "encrypted" in socket;
  return `${scheme}${isSecure ? "s" : ""}://${headers.host ?? "localhost"}`;
}

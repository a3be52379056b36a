import type { CellRequest } from "./exchange.ts";

/** The least that workerd reads at once of a new request. */
const readBytesMin = 4096;

/**
 * Whether a cell died before it began to read a request. On Linux the peer of a closed socket gets a reset
 * instead of an orderly end if unread data was left, and a small request is written and read in one piece.
 */
export function isUnprocessed(
  error: unknown,
  { path, headers, body }: CellRequest,
  metadata: string,
): boolean {
  const { code = "" } = error as NodeJS.ErrnoException;
  if (unsent.has(code)) return true;
  let bytes = body === null ? 0 : Number.NaN; // without a length the body is sent in several pieces
  for (let i = 0; i < headers.length; i += 2)
    if (headers[i]!.toLowerCase() === "content-length") bytes = Number(headers[i + 1]);
  bytes += path.length + metadata.length + headLineBytes;
  for (const each of headers) bytes += each.length + ": ".length;
  return code === "ECONNRESET" && bytes <= readBytesMin;
}
/** An upper bound for the rest of the request's head. */
const headLineBytes = 128;
/** Errors of connections that were never established. */
const unsent: ReadonlySet<string> = new Set(["ECONNREFUSED", "ENOENT", "EAGAIN"]);

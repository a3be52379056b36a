import { isBlobsUnavailable, isDiskFull, isUnavailable } from "../../platform/storage/faults.ts";
import { TooMuchWork, workMax } from "../../rules/fields/work.ts";
import { hopsMax } from "./via.ts";

/** A script's exception, with truncated texts. */
export interface ShownException {
  name: string;
  message: string;
  stack: string | undefined;
}

/** An error page for a visitor. Codes follow the public ones when there is one. */
export class VisitorError extends Error {
  readonly status: number;
  readonly code: number;
  readonly title: string;
  /** When the request may be retried; undefined when waiting does not help. */
  readonly retryAfterSeconds: number | undefined;
  /** A script's exception, shown only when the visitor is its author. */
  readonly exception: ShownException | undefined;

  constructor(
    status: number,
    code: number,
    title: string,
    message: string,
    options: ErrorOptions & { retryAfterSeconds?: number; exception?: ShownException | undefined } = {},
  ) {
    super(message, options);
    this.status = status;
    this.code = code;
    this.title = title;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.exception = options.exception;
  }
}

const make =
  (status: number, code: number, title: string, message: string) =>
  (cause?: unknown): VisitorError =>
    new VisitorError(status, code, title, message, { cause });

/** The errors that visitors get, each with status, code and text. docs/reference/errors.md lists them. */
export const visitorErrors = {
  badRequest: (what: string) => new VisitorError(400, 400, "Bad request", what),
  headersTooLarge: make(
    431,
    431,
    "Request header fields too large",
    "The request has too many or too large header fields.",
  ),
  bodyTooLarge: make(413, 413, "Payload too large", "The request's body is larger than allowed."),
  unknownHost: make(
    404,
    1001,
    "Unknown host",
    "No zone of this installation has this host name, or the zone has no record for it.",
  ),
  directAddress: make(
    403,
    1003,
    "Direct access by address",
    "Use a host name: an address does not identify a site.",
  ),
  paused: make(
    503,
    1801,
    "Zone paused",
    "The owner has paused this zone; its visitors should reach the origin directly.",
  ),
  unproxied: make(
    421,
    1802,
    "Not proxied",
    "The record for this host is not proxied; its visitors should reach the origin directly.",
  ),
  noOrigin: make(530, 1016, "Origin DNS error", "The host's record points to a name that has no address."),
  privateOrigin: make(
    403,
    1803,
    "Origin not allowed",
    "The host's record points to a private address, which this installation does not allow.",
  ),
  ownListener: make(
    403,
    1000,
    "Prohibited address",
    "The host's record points to this installation's own services.",
  ),
  loop: make(508, 1019, "Loop detected", "The request has passed through this installation before."),
  originRefused: make(
    521,
    521,
    "Origin refused the connection",
    "The origin server does not accept connections.",
  ),
  originConnectTimeout: make(
    522,
    522,
    "Connection to the origin timed out",
    "The origin server did not accept a connection in time.",
  ),
  originUnreachable: make(523, 523, "Origin unreachable", "There is no route to the origin server."),
  originFirstByteTimeout: make(
    524,
    524,
    "The origin did not respond in time",
    "The origin server accepted the request but did not respond in time.",
  ),
  originFailed: make(
    520,
    520,
    "The origin's response is invalid",
    "The origin server closed the connection, or its response is not HTTP.",
  ),
  originTls: make(
    525,
    525,
    "TLS handshake with the origin failed",
    "The origin server did not complete a TLS handshake. If it speaks plain HTTP, set the zone's setting ssl to flexible.",
  ),
  originCertificate: make(
    526,
    526,
    "Invalid certificate of the origin",
    "The origin server's certificate is not valid for this host, and the zone's setting ssl is strict.",
  ),
  unavailable: (cause: unknown) =>
    new VisitorError(
      503,
      503,
      "Temporarily unavailable",
      "A part of this installation does not respond at the moment. Try again in a moment.",
      { cause, retryAfterSeconds: 5 },
    ),
  stale: () =>
    new VisitorError(
      503,
      1109,
      "Temporarily unavailable",
      "This node has not received the latest configuration of its installation. Try again in a moment.",
      { retryAfterSeconds: 5 },
    ),
  rulesTooSlow: make(
    500,
    1110,
    "The rules take too much work",
    `The functions and searches of the zone's rules would read and write more than ${workMax / 1024 / 1024} Mi characters for this request.`,
  ),
  internal: make(
    500,
    500,
    "Internal error",
    "An internal error occurred in this installation. Its log has the details under the ray below.",
  ),
};

/** The same code, for requests that scripts have made. */
export const loopLimit = make(
  508,
  1019,
  "Loop limit reached",
  `Scripts have called each other more than ${hopsMax} times for this request.`,
);

/**
 * The error page for any exception. Errors that are not meant for visitors become an internal error, with
 * details in the log only.
 */
export function visitorError(error: unknown): VisitorError {
  if (error instanceof VisitorError) return error;
  if (error instanceof TooMuchWork) return visitorErrors.rulesTooSlow(error);
  return isUnavailable(error) || isDiskFull(error) || isBlobsUnavailable(error)
    ? visitorErrors.unavailable(error)
    : visitorErrors.internal(error);
}

/** The error page for a failed connection to an origin. */
export function originError(error: unknown): VisitorError {
  if (error instanceof VisitorError) return error;
  const code = (error as { code?: string } | null)?.code ?? "";
  if (code === "ECONNREFUSED") return visitorErrors.originRefused(error);
  if (code === "UND_ERR_CONNECT_TIMEOUT" || code === "ETIMEDOUT")
    return visitorErrors.originConnectTimeout(error);
  if (code === "EHOSTUNREACH" || code === "ENETUNREACH" || code === "EADDRNOTAVAIL")
    return visitorErrors.originUnreachable(error);
  if (code === "UND_ERR_HEADERS_TIMEOUT") return visitorErrors.originFirstByteTimeout(error);
  return visitorErrors.originFailed(error);
}

/**
 * Classifies a failed TLS connection: network errors unchanged, otherwise a failed handshake or an invalid
 * certificate.
 */
export function tlsError(error: Error): Error {
  const { code = "", syscall } = error as { code?: string; syscall?: string };
  if (syscall === "connect" || code === "UND_ERR_CONNECT_TIMEOUT") return error;
  return /CERT|SELF_SIGNED|UNABLE_TO|HOSTNAME_MISMATCH|CRL_|CHAIN|INVALID_PURPOSE/.test(code) &&
    !code.startsWith("ERR_SSL")
    ? visitorErrors.originCertificate(error)
    : visitorErrors.originTls(error);
}

/** What a visitor is told when a request cannot be served. Codes follow the public ones where there is one. */
export class VisitorError extends Error {
  readonly status: number;
  readonly code: number;
  readonly title: string;

  constructor(status: number, code: number, title: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
    this.code = code;
    this.title = title;
  }
}

const make =
  (status: number, code: number, title: string, message: string) =>
  (cause?: unknown): VisitorError =>
    new VisitorError(status, code, title, message, { cause });

export const visitorErrors = {
  badRequest: (what: string) => new VisitorError(400, 400, "Bad request", what),
  headersTooLarge: make(
    431,
    431,
    "Request header fields too large",
    "The request has more or larger header fields than are accepted.",
  ),
  bodyTooLarge: make(413, 413, "Payload too large", "The request's body is larger than is accepted."),
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
    "Ask for a host name: an address alone does not say which site is meant.",
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
  noOrigin: make(530, 1016, "Origin DNS error", "The host's record leads to a name that has no address."),
  privateOrigin: make(
    403,
    1803,
    "Origin not allowed",
    "The host's record leads to a private address, which this installation does not allow.",
  ),
  ownListener: make(
    403,
    1000,
    "Prohibited address",
    "The host's record leads back to this installation's own services.",
  ),
  loop: make(508, 1019, "Loop detected", "The request has passed this installation before."),
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
    "The origin did not answer in time",
    "The origin server accepted the request but did not answer it in time.",
  ),
  originFailed: make(
    520,
    520,
    "The origin's answer was not understood",
    "The origin server closed the connection, or answered with something that is not HTTP.",
  ),
  originTls: make(
    525,
    525,
    "TLS handshake with the origin failed",
    "The origin server did not complete a TLS handshake. Where it speaks plain HTTP, the zone's setting ssl has to be flexible.",
  ),
  originCertificate: make(
    526,
    526,
    "Invalid certificate of the origin",
    "The origin server's certificate is not valid for this host, and the zone's setting ssl is strict.",
  ),
  internal: make(
    500,
    500,
    "Internal error",
    "Something went wrong in this installation. Its log says what, under the ray below.",
  ),
};

/** The visitor's view of a failed connection to an origin. */
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

/** A failed connection over TLS: the network's fault as it is, else a failed handshake or a certificate that does not hold. */
export function tlsError(error: Error): Error {
  const { code = "", syscall } = error as { code?: string; syscall?: string };
  if (syscall === "connect" || code === "UND_ERR_CONNECT_TIMEOUT") return error;
  return /CERT|SELF_SIGNED|UNABLE_TO|HOSTNAME_MISMATCH|CRL_|CHAIN|INVALID_PURPOSE/.test(code) &&
    !code.startsWith("ERR_SSL")
    ? visitorErrors.originCertificate(error)
    : visitorErrors.originTls(error);
}

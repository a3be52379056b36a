/** Why a connection can receive no more requests. */
export type RefusalReason = "malformed" | "too large" | "late";

/** Bytes that are no request. */
export class RequestError extends Error {
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

export const malformed = (message = "the request is not valid HTTP (RFC 9112)"): RequestError =>
  new RequestError("malformed", message);

import { isForeignKeyViolation } from "../../platform/storage/dialects.ts";
import {
  BlobTooLarge,
  isBlobsUnavailable,
  isDiskFull,
  isUnavailable,
} from "../../platform/storage/faults.ts";
import { DomainError, DomainErrors, inputErrors } from "../../platform/domain-error.ts";

/** An error with a public message. `cause` is only logged, never sent. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: number;
  readonly pointer: string | undefined;
  readonly chain: readonly { code: number; message: string }[];
  readonly retryAfterSeconds: number | undefined;
  readonly meta: Readonly<Record<string, unknown>> | undefined;

  constructor(
    status: number,
    code: number,
    message: string,
    more: {
      pointer?: string | undefined;
      chain?: readonly { code: number; message: string }[];
      retryAfterSeconds?: number | undefined;
      meta?: Readonly<Record<string, unknown>> | undefined;
      cause?: unknown;
    } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.status = status;
    this.code = code;
    this.pointer = more.pointer;
    this.chain = more.chain ?? [];
    this.retryAfterSeconds = more.retryAfterSeconds;
    this.meta = more.meta;
  }
}

/** Several errors of one request, all reported to the caller. */
export class ApiErrors extends Error {
  readonly errors: readonly ApiError[];
  constructor(errors: readonly ApiError[]) {
    super(errors[0]?.message ?? "invalid request");
    this.errors = errors;
  }
}

type DomainFactories = Record<string, (...values: never[]) => DomainError>;

/**
 * The status and the code of each error in a table of a domain; the status "origin" is that of the origin's
 * answer. A missing or unknown kind is a type error.
 */
export type ErrorCodes<Table extends DomainFactories = DomainFactories> = Readonly<
  Record<ReturnType<Table[keyof Table]>["kind"], readonly [status: number | "origin", code: number]>
>;

const inputErrorCodes: ErrorCodes<typeof inputErrors> = {
  "input.invalid": [400, 9207],
  "input.absentProduct": [404, 7010],
};

/** The public form of an error of a domain; undefined for other errors, or if the table has no codes for it. */
export function apiErrorOf(error: unknown, errorCodes: ErrorCodes): ApiError | ApiErrors | undefined {
  if (error instanceof DomainErrors) {
    const each = error.errors.map((one) => mapped(one, errorCodes));
    return each.includes(undefined) ? undefined : new ApiErrors(each as ApiError[]);
  }
  return error instanceof DomainError ? mapped(error, errorCodes) : undefined;
}

function mapped(error: DomainError, errorCodes: ErrorCodes): ApiError | undefined {
  const known: ErrorCodes = { ...inputErrorCodes, ...errorCodes };
  const codes = known[error.kind];
  if (codes === undefined) return undefined;
  const { message, pointer, retryAfterSeconds, meta } = error;
  const chain = error.reasons.map((reason) => ({ code: known[reason.kind]![1], message: reason.message }));
  const status = codes[0] === "origin" ? error.originStatus! : codes[0];
  return new ApiError(status, codes[1], message, { pointer, retryAfterSeconds, chain, meta });
}

/** Errors that any operation can return. The errors of one domain are in its errors.ts and api-errors.ts. */
export const apiErrors = {
  noCredentials: () =>
    new ApiError(
      401,
      9106,
      "Authentication failed (missing X-Auth-Key and X-Auth-Email, or Authorization headers)",
    ),
  badAuthorizationHeader: () =>
    new ApiError(400, 6003, "Invalid request headers", {
      chain: [{ code: 6111, message: "Invalid format for Authorization header" }],
    }),
  invalidToken: (why = "Invalid API Token") => new ApiError(401, 1000, why),
  invalidKey: () => new ApiError(401, 9103, "Unknown X-Auth-Key or X-Auth-Email"),
  unauthorized: (what: string) =>
    new ApiError(403, 9109, `Unauthorized to access requested resource: the credentials lack ${what}`),
  noRoute: (method: string, path: string) =>
    new ApiError(404, 7003, `Could not route to ${path}, perhaps your object identifier is invalid?`, {
      chain: [{ code: 7000, message: `No route for ${method} on that URI` }],
    }),
  absentProduct: (product: string, replacement?: string) =>
    mapped(inputErrors.absentProduct(product, replacement), {})!,
  malformedJson: (why: string) => new ApiError(400, 6007, `Malformed JSON in request body: ${why}`),
  contentType: (expected: string, received: string) =>
    new ApiError(415, 6415, `Expected a body of Content-Type ${expected} but received ${received}`),
  bodyTooLarge: (limitBytes: number) =>
    new ApiError(413, 6413, `The request body is too large. Expected at most ${limitBytes} bytes`),
  invalid: (message: string, pointer?: string) => new ApiError(400, 9207, message, { pointer }),
  rateLimited: (retryAfterSeconds: number) =>
    new ApiError(429, 10013, `Rate limit exceeded. Try again in ${retryAfterSeconds} seconds`, {
      retryAfterSeconds,
    }),
  diskFull: () =>
    new ApiError(507, 10507, "Nothing was written: the disk of this installation is full", {
      retryAfterSeconds: 60,
    }),
  deletedMeanwhile: () =>
    new ApiError(
      404,
      1003,
      "A resource that the request refers to was deleted while the request was in progress",
    ),
  changedMeanwhile: (tag: string) =>
    new ApiError(
      412,
      10412,
      `Nothing was changed: the resource is not as If-Match says, its tag is now "${tag}". Read it again`,
    ),
  nothingToMatch: () =>
    new ApiError(412, 10412, "Nothing was changed: the resource that If-Match means does not exist"),
  conditionUnknown: () =>
    new ApiError(
      400,
      10413,
      "This operation has no condition. Leave the header If-Match out, or use * for any state",
    ),
  unavailable: () =>
    new ApiError(503, 10503, "The database of this installation does not answer. Try again in 5 seconds", {
      retryAfterSeconds: 5,
    }),
  behind: (wanted: number, takenOver: number) =>
    new ApiError(
      503,
      10511,
      `This node has not received the change ${wanted} yet, only those up to ${takenOver}. Try again in 1 second`,
      { retryAfterSeconds: 1 },
    ),
  blobsUnavailable: () =>
    new ApiError(503, 10509, "The file store of this installation does not answer. Try again in 5 seconds", {
      retryAfterSeconds: 5,
    }),
  blobTooLarge: (bytesMax: number) =>
    new ApiError(
      413,
      10508,
      `Expected at most ${bytesMax} bytes, the limit of this installation's file store`,
    ),
  internal: (requestId: string) =>
    new ApiError(
      500,
      10500,
      `An internal error occurred. See the server's log for details under request id ${requestId}`,
    ),
};

/**
 * The public form of an error: an ApiError as it is, an error of a domain with its codes, or a temporary failure
 * of the disk or the database. Undefined for all other errors, whose details only the log shows.
 */
export function callerError(error: unknown, errorCodes: ErrorCodes = {}): ApiError | ApiErrors | undefined {
  if (error instanceof ApiError || error instanceof ApiErrors) return error;
  const ofDomain = apiErrorOf(error, errorCodes);
  if (ofDomain !== undefined) return ofDomain;
  if (isDiskFull(error)) return apiErrors.diskFull();
  if (isForeignKeyViolation(error)) return apiErrors.deletedMeanwhile();
  if (isBlobsUnavailable(error)) return apiErrors.blobsUnavailable();
  if (error instanceof BlobTooLarge) return apiErrors.blobTooLarge(error.bytesMax);
  return isUnavailable(error) ? apiErrors.unavailable() : undefined;
}

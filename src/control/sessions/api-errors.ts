import { ApiError } from "../api/errors.ts";
import type { TokenRefusal } from "../tokens/tokens.ts";

const reasons: Record<TokenRefusal, string> = {
  unknown: "Invalid API Token",
  disabled: "Invalid API Token: the token is disabled",
  expired: "Invalid API Token: the token has expired",
  not_yet_valid: "Invalid API Token: the token is not valid yet",
  address: "Cannot use the access token from this address",
};
const codes = {
  used: "This start link has been used. Sign in with the API token",
  expired: "This start link has expired. Sign in with the API token",
  unknown: "This start link is not valid. Sign in with the API token",
};

/** Errors of the console's sign-in. */
export const sessionErrors = {
  unknownHost: () =>
    new ApiError(
      403,
      10_401,
      "Expected localhost, a loopback address or a host of --dashboard-hosts as the Host of the console",
    ),
  foreignPage: () => new ApiError(403, 10_402, "Expected a call from a page of the console"),
  plainHttp: () =>
    new ApiError(
      403,
      10_403,
      "Expected a connection over TLS, because the token would cross the network in plain text",
    ),
  noSession: () => new ApiError(401, 10_404, "No session: sign in with an API token"),
  noMethod: (method: string) =>
    new ApiError(405, 10_405, `Expected GET, POST or DELETE but received ${method}`),
  noToken: () => new ApiError(400, 10_406, 'Expected JSON with "token" or "code"'),
  tooLarge: (bytesMax: number) => new ApiError(413, 10_407, `Expected at most ${bytesMax} bytes`),
  wrongToken: (reason: TokenRefusal) => new ApiError(401, 1000, reasons[reason]),
  code: (reason: keyof typeof codes) => new ApiError(401, 10_408, codes[reason]),
  tooMany: (seconds: number) =>
    new ApiError(429, 10_409, `Too many wrong tokens from this address. Try again in ${seconds} seconds`, {
      retryAfterSeconds: seconds,
    }),
};

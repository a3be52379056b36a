import type { IncomingHttpHeaders } from "node:http";
import { isSecretShaped } from "../../access/secret.ts";
import type { Actor } from "../../access/actor.ts";
import type { TokenRefusal, Tokens } from "../../tokens/tokens.ts";
import { apiErrors, ApiError } from "../errors.ts";

const refusals: Record<TokenRefusal, () => ApiError> = {
  unknown: () => apiErrors.invalidToken(),
  disabled: () => apiErrors.invalidToken("Invalid API Token: the token is disabled"),
  expired: () => apiErrors.invalidToken("Invalid API Token: the token has expired"),
  not_yet_valid: () => apiErrors.invalidToken("Invalid API Token: the token is not valid yet"),
  address: () => new ApiError(403, 9109, "Cannot use the access token from this address"),
};

/**
 * Authenticates a call. A token takes precedence over a legacy key, because the official client sends every
 * credential it has. Throws ApiError (400, 401 or 403).
 */
export async function authenticate(
  headers: IncomingHttpHeaders,
  clientIp: string,
  tokens: Tokens,
): Promise<Actor> {
  const { authorization } = headers;
  if (authorization !== undefined) {
    const secret = /^Bearer +(\S+)$/i.exec(authorization)?.[1];
    if (secret === undefined || !isSecretShaped(secret)) throw apiErrors.badAuthorizationHeader();
    const known = await tokens.authenticate(secret, clientIp);
    if (typeof known === "string") throw refusals[known]();
    return known.actor;
  }
  const { "x-auth-email": email, "x-auth-key": key } = headers;
  if (typeof email !== "string" || typeof key !== "string") throw apiErrors.noCredentials();
  const actor = tokens.authenticateKey(email, key);
  if (actor === undefined) throw apiErrors.invalidKey();
  return actor;
}

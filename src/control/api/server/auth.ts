import type { IncomingHttpHeaders } from "node:http";
import { isSecretShaped } from "../../access/secret.ts";
import type { Actor } from "../../access/actor.ts";
import { sessionCookie } from "../../sessions/cookie.ts";
import { isOwnPage } from "../../sessions/hosts.ts";
import type { Sessions } from "../../sessions/sessions.ts";
import type { TokenRefusal, Tokens } from "../../tokens/tokens.ts";
import { apiErrors, ApiError } from "../errors.ts";

const refusals: Record<TokenRefusal, () => ApiError> = {
  unknown: () => apiErrors.invalidToken(),
  disabled: () => apiErrors.invalidToken("Invalid API Token: the token is disabled"),
  expired: () => apiErrors.invalidToken("Invalid API Token: the token has expired"),
  not_yet_valid: () => apiErrors.invalidToken("Invalid API Token: the token is not valid yet"),
  address: () => new ApiError(403, 9109, "Cannot use the access token from this address"),
};

/** The services that know callers. */
export interface Callers {
  tokens: Tokens;
  sessions: Pick<Sessions, "use">;
  /** The hosts of the console other than loopback; undefined if the console is off. */
  sessionHosts: ReadonlySet<string> | undefined;
}

/**
 * Authenticates a call. A token takes precedence over a legacy key, because the official client sends every
 * credential it has. The cookie of the console comes last. Throws ApiError (400, 401 or 403).
 */
export async function authenticate(
  headers: IncomingHttpHeaders,
  clientIp: string,
  { tokens, sessions, sessionHosts }: Callers,
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
  if (typeof email !== "string" || typeof key !== "string") {
    const cookie = sessionHosts === undefined ? undefined : sessionCookie(headers);
    if (cookie === undefined || !isOwnPage(headers, sessionHosts!)) throw apiErrors.noCredentials();
    const session = await sessions.use(cookie, clientIp);
    if (typeof session === "string") throw refusals[session]();
    return session.actor;
  }
  const actor = tokens.authenticateKey(email, key);
  if (actor === undefined) throw apiErrors.invalidKey();
  return actor;
}

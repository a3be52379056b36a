import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import type { Accounts } from "../accounts/accounts.ts";
import { isSecretShaped } from "../access/secret.ts";
import type { Actor } from "../access/actor.ts";
import type { Audit } from "../audit/audit.ts";
import { success } from "../api/envelope.ts";
import { ApiError } from "../api/errors.ts";
import type { ApiToken, Tokens } from "../tokens/tokens.ts";
import type { Zones } from "../zones/zones.ts";
import { isId, isoTime } from "../../platform/util/ids.ts";
import { permissionsOn } from "./can.ts";
import { clearCookies, sessionCookie, setCookie } from "./cookie.ts";
import { sessionErrors } from "./api-errors.ts";
import { hostUse, isOwnPage } from "./hosts.ts";
import type { OpenSession, Sessions } from "./sessions.ts";
import { signInOf, signInOperation, signInReader } from "./audited.ts";
import type { StartCodes } from "./start-codes.ts";
import { WrongTokens } from "./wrong-tokens.ts";

const bodyBytesMax = 16_384;

interface Needed {
  sessions: Sessions;
  startCodes: StartCodes;
  tokens: Tokens;
  accounts: Pick<Accounts, "list" | "find" | "findUser">;
  audit: Pick<Audit, "perform" | "noteRefusal">;
  zones: Pick<Zones, "find">;
  hosts: ReadonlySet<string>;
  logger: Logger;
}

interface SignIn {
  token?: unknown;
  code?: unknown;
  /** The browser did not keep the secure cookie. */
  plain?: unknown;
}

/** `POST`, `GET` and `DELETE` of `/dashboard/session`: signs in, returns the session or null, and signs out. */
export class SessionCalls {
  readonly #needed: Needed;
  readonly #wrong = new WrongTokens();

  constructor(needed: Needed) {
    this.#needed = needed;
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const result = await this.#perform(request, response);
      send(response, 200, success(result));
    } catch (error) {
      // The client ended its request.
      if (request.destroyed && !request.complete) return;
      if (!(error instanceof ApiError)) {
        this.#needed.logger.error({ err: error }, "a sign-in failed");
        send(response, 500, failed(new ApiError(500, 1000, "An internal error occurred")));
        return;
      }
      if (error.retryAfterSeconds !== undefined) response.setHeader("retry-after", error.retryAfterSeconds);
      if (!request.complete) response.setHeader("connection", "close");
      send(response, error.status, failed(error));
    }
  }

  async #perform(request: IncomingMessage, response: ServerResponse): Promise<object | null> {
    const { hosts, sessions } = this.#needed;
    const use = hostUse(request.headers, hosts);
    if (use === "unknown") throw sessionErrors.unknownHost();
    if (!isOwnPage(request.headers, hosts)) throw sessionErrors.foreignPage();
    if (request.method === "POST") {
      if (use === "known" && request.headers["x-forwarded-proto"] !== "https")
        throw sessionErrors.plainHttp();
      return this.#signIn(request, response, use === "loopback");
    }
    const cookie = sessionCookie(request.headers);
    if (request.method === "DELETE") {
      if (cookie !== undefined) await sessions.end(cookie);
      response.setHeader("set-cookie", clearCookies);
      return {};
    }
    if (request.method !== "GET") throw sessionErrors.noMethod(request.method ?? "");
    const session = cookie === undefined ? "unknown" : await sessions.use(cookie, addressOf(request));
    const zoneId = /[?&]zone=([0-9a-f]{32})(?:&|$)/.exec(request.url ?? "")?.[1];
    // The page asks before it shows the sign-in, and no session is not a fault then.
    if (typeof session === "string") {
      if (zoneId === undefined) return null;
      throw sessionErrors.noSession();
    }
    return zoneId === undefined ? this.#describe(session) : this.#onZone(session, zoneId);
  }

  async #signIn(request: IncomingMessage, response: ServerResponse, isLoopback: boolean): Promise<object> {
    const waitSeconds = this.#wrong.waitSeconds(addressOf(request));
    if (waitSeconds > 0) throw sessionErrors.tooMany(waitSeconds);
    const asked = await readSignIn(request);
    const isPlain = asked.plain === true;
    if (isPlain && !isLoopback) throw sessionErrors.plainHttp();
    const { token, actor } = await this.#known(asked, request);
    const audited = signInOf(request, actor, this.#needed.accounts);
    const cookie = await this.#needed.audit.perform(signInOperation, audited, signInReader, () =>
      this.#needed.sessions.begin(token),
    );
    response.setHeader("set-cookie", setCookie(cookie, isPlain));
    return { token: { id: token.id, name: token.name } };
  }

  /** The caller of a sign-in. Each attempt counts as wrong from the start, and is taken back once it succeeds. */
  async #known(asked: SignIn, request: IncomingMessage): Promise<{ token: ApiToken; actor: Actor }> {
    const address = addressOf(request);
    const waitSeconds = this.#wrong.waitSeconds(address);
    if (waitSeconds > 0) throw sessionErrors.tooMany(waitSeconds);
    this.#wrong.note(address);
    const secret = typeof asked.token === "string" ? asked.token.trim() : "";
    const known =
      typeof asked.code === "string"
        ? await this.#ofCode(asked.code, address)
        : isSecretShaped(secret)
          ? await this.#needed.tokens.authenticate(secret, address)
          : "unknown";
    if (typeof known === "string") {
      await this.#noteRefusal(request, secret);
      throw sessionErrors.wrongToken(known);
    }
    this.#wrong.forgive(address);
    return known;
  }

  /** The token of a code may have changed since the code was made. */
  async #ofCode(code: string, address: string): ReturnType<Tokens["authenticate"]> {
    const { startCodes, tokens } = this.#needed;
    const taken = startCodes.take(code);
    if (typeof taken === "string") throw sessionErrors.code(taken);
    return tokens.authenticateAgain(taken.id, taken.secretHash, address);
  }

  /** A refused token leaves an entry for its owner; an unknown one is only logged. */
  async #noteRefusal(request: IncomingMessage, secret: string): Promise<void> {
    const { tokens, audit, accounts, logger } = this.#needed;
    const actor = isSecretShaped(secret) ? await tokens.actorOf(secret) : undefined;
    if (actor === undefined) logger.warn({ address: addressOf(request) }, "a sign-in with an unknown token");
    else audit.noteRefusal(signInOperation, signInOf(request, actor, accounts), 401);
  }

  #describe({ actor, token, createdOn, expiresOn }: OpenSession): object {
    const { accounts } = this.#needed;
    const user = actor.userId === null ? undefined : accounts.findUser(actor.userId);
    return {
      token: { id: token.id, name: token.name },
      user: user === undefined ? null : { id: user.id, email: user.email },
      created_on: isoTime(createdOn),
      expires_on: isoTime(expiresOn),
      can: actor.userId === null ? [] : permissionsOn(actor, "user", { userId: actor.userId }),
      accounts: accounts
        .list()
        .filter((account) => actor.belongsTo(account.id))
        .map(({ id, name }) => ({
          id,
          name,
          can: permissionsOn(actor, "account", { accountId: id }),
          can_on_all_zones: permissionsOn(actor, "zone", { accountId: id, zoneId: "*" }),
        })),
    };
  }

  #onZone({ actor }: OpenSession, zoneId: string): object {
    const zone = isId(zoneId) ? this.#needed.zones.find(zoneId) : undefined;
    if (zone === undefined || !actor.belongsTo(zone.accountId)) return { can: [] };
    return { can: permissionsOn(actor, "zone", { accountId: zone.accountId, zoneId }) };
  }
}

const addressOf = (request: IncomingMessage): string => request.socket.remoteAddress ?? "";

async function readSignIn(request: IncomingMessage): Promise<SignIn> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > bodyBytesMax) throw sessionErrors.tooLarge(bodyBytesMax);
    pieces.push(piece);
  }
  try {
    const asked = JSON.parse(Buffer.concat(pieces).toString()) as unknown;
    if (typeof asked === "object" && asked !== null) return asked;
  } catch {
    // Answered below.
  }
  throw sessionErrors.noToken();
}

const failed = ({ code, message }: ApiError): object => ({
  success: false,
  errors: [{ code, message }],
  messages: [],
  result: null,
});

function send(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body);
  response
    .writeHead(status, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(text),
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    })
    .end(text);
}

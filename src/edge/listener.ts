import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { isIP, type AddressInfo, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Logger } from "pino";
import { drain, listen } from "../api/listener.ts";
import { observeAnswer, type Observe } from "../observability/observation.ts";
import type { CfObject, RequestCf } from "../request-cf/request-cf.ts";
import type { RequestDescription } from "../rules/index.ts";
import type { AddressPolicy } from "./address-policy.ts";
import { answerError, renderError } from "./error-page.ts";
import { VisitorError, visitorErrors } from "./errors.ts";
import type { EdgeHandler, EdgeVisit, UpgradeHandler, UpgradeVisit, Visit } from "./handlers.ts";
import { originHeaders, scriptHeaders, type ForwardedRequest } from "./headers.ts";
import { refuseMalformed } from "./malformed.ts";
import { Origins } from "./origins.ts";
import { forward, type OriginRequest } from "./proxy.ts";
import { resolveName, resolveTargets, type LookUp } from "./resolve.ts";
import { originTls, type OriginTls, type Routing, type SslMode } from "./route.ts";
import type { EdgeSettings } from "./settings.ts";
import type { EdgeSnapshot, EdgeZone, HostEntry } from "./snapshot.ts";
import { target, type Target } from "./target.ts";
import { isWebSocket, tunnel } from "./upgrade.ts";

export interface EdgeOptions {
  settings: EdgeSettings;
  snapshot: EdgeSnapshot;
  policy: AddressPolicy;
  lookUp: LookUp;
  logger: Logger;
  /** Asked in turn, before the origin, whether they take a request. */
  handlers?: readonly EdgeHandler[];
  upgradeHandlers?: readonly UpgradeHandler[];
  /** Shared with those who also send to origins; an edge without them has its own. */
  origins?: Origins;
  /** Chooses paths where smart routing is on; without it the addresses are tried in turn. */
  routing?: Routing;
  /** How a zone's visitors and origins are spoken to; plain HTTP to origins, unless this says otherwise. */
  sslMode?: (zoneId: string) => SslMode;
  /** Told of each request when it is over. */
  observe?: Observe | undefined;
  /** Knows more of requests than they say themselves; without it their `cf` is empty. */
  requestCf?: RequestCf;
}

/** What a request asks for, and what the snapshot has for it. */
interface Found extends Target {
  zone: EdgeZone | undefined;
  entry: HostEntry | undefined;
  /** Who made the connection; the client, or a trusted proxy that it came through. */
  peerAddress: string;
  clientAddress: string;
  isTls: boolean;
  cf: () => string;
  describe: () => RequestDescription;
}

/** The edge: finds the zone of each request in memory, and proxies it to the origin that the zone's records name. */
export class Edge {
  readonly #options: EdgeOptions;
  readonly #origins: Origins;
  readonly #handlers: readonly EdgeHandler[];
  readonly #server: Server;
  readonly #tunnels = new Set<Socket>();
  /** The latest answer on each connection. */
  readonly #answers = new WeakMap<Duplex, ServerResponse>();
  /** Connections with a request that could be read differently: nothing after it is served. */
  readonly #refused = new WeakSet<Socket>();
  #isClosing = false;

  constructor(options: EdgeOptions) {
    const { settings } = options;
    this.#options = options;
    this.#origins = options.origins ?? new Origins(settings, options.policy);
    this.#handlers = options.handlers ?? [];
    this.#server = createServer({
      insecureHTTPParser: false,
      requireHostHeader: false, // answered with our own page
      maxHeaderSize: settings.headerBytesMax,
      headersTimeout: settings.headTimeoutMs,
      requestTimeout: 0, // an upload may take long; one that stands still is ended by the idle timeout
      keepAliveTimeout: settings.keepAliveTimeoutMs,
      connectionsCheckingInterval: 5000,
      shouldUpgradeCallback: isWebSocket,
    });
    this.#server.maxHeadersCount = settings.headerCountMax * 2; // what is over the limit, but not by far, gets our own page
    this.#server.setTimeout(settings.idleTimeoutMs);
    this.#server.on("request", (request, response) => this.serve(request, response));
    this.#server.on(
      "upgrade",
      (request: IncomingMessage, socket: Duplex, head: Buffer) =>
        void this.#upgrade(request, socket as Socket, head),
    );
    this.#server.on("clientError", (error, socket) => {
      const answer = this.#answers.get(socket);
      // The request before it was refused, and its page is on the way: that is the last answer here.
      if (this.#refused.has(socket as Socket) && answer?.headersSent === true && answer.socket !== null)
        answer.end();
      else refuseMalformed(error, socket, answer, newRay(settings.colo));
    });
  }

  async listen(host: string, port: number): Promise<AddressInfo> {
    return listen(this.#server, host, port);
  }

  /** Serves HTTP/1.1 on a connection that somebody else has accepted: one over TLS. */
  accept(socket: Duplex): void {
    this.#server.emit("connection", socket);
  }

  /** Answers a request that may be of another server, of HTTP/2 then. */
  serve(request: IncomingMessage, response: ServerResponse): void {
    this.#serve(request, response).catch((error: unknown) => {
      this.#options.logger.error({ err: error }, "an answer could not be written");
      response.destroy();
    });
  }

  /** Where it listens; undefined before and after. */
  get address(): AddressInfo | undefined {
    return (this.#server.address() as AddressInfo | null) ?? undefined;
  }

  /** Stops accepting, finishes what is under way until the deadline, and ends the rest. */
  async close(deadlineMs: number): Promise<void> {
    this.#isClosing = true;
    const deadline = setTimeout(() => this.#tunnels.forEach((socket) => socket.destroy()), deadlineMs);
    await drain(this.#server, deadlineMs);
    clearTimeout(deadline);
    this.#tunnels.forEach((socket) => socket.destroy());
    await this.#origins.close();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const ray = newRay(this.#options.settings.colo);
    if (this.#refused.has(request.socket)) return;
    this.#answers.set(request.socket, response);
    // The parser drops what follows a request with Upgrade in the same packet, so the next one needs a new connection.
    if (request.headers.upgrade !== undefined || this.#isClosing) response.shouldKeepAlive = false;
    // A visitor whose answer began before the close was not told that the connection ends with it.
    response.on("close", () => this.#isClosing && this.#server.closeIdleConnections());
    let found: Found | undefined;
    const { observe } = this.#options;
    if (observe !== undefined) observeAnswer(response, request, observe, () => found?.zone?.name);
    try {
      found = this.#find(request, ray);
      await this.#pass(0, found, request, response, found.path, ray);
    } catch (error) {
      answerError(request, response, this.#visitorError(error, request, ray), ray);
    }
  }

  async #upgrade(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    const ray = newRay(this.#options.settings.colo);
    this.#tunnels.add(socket);
    socket.on("close", () => this.#tunnels.delete(socket));
    socket.on("error", () => socket.destroy());
    try {
      await this.#passUpgrade(this.#find(request, ray), request, socket, head, ray);
    } catch (error) {
      const refusal = this.#visitorError(error, request, ray);
      const { type, body } = renderError(
        refusal,
        request.headers.accept ?? "",
        ray,
        request.headers.host ?? "",
      );
      const length = Buffer.byteLength(body);
      socket.end(
        `HTTP/1.1 ${refusal.status} ${refusal.title}\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\ncf-ray: ${ray}\r\nconnection: close\r\n\r\n${body}`,
      );
    }
  }

  /** The zone and the record of a request. Throws where its zone is paused, or its record is not proxied. */
  #find(request: IncomingMessage, ray: string): Found {
    const { snapshot, settings } = this.#options;
    const asked = this.#target(request, settings);
    const { host, path } = asked;
    const zone = snapshot.findZone(host);
    const entry = zone?.resolve(host);
    if (zone !== undefined && entry !== undefined) {
      if (zone.isPaused) throw visitorErrors.paused();
      if (!entry.isProxied)
        throw entry.targets.length === 0 ? visitorErrors.unknownHost() : visitorErrors.unproxied();
    }
    const { requestCf } = this.#options;
    const peerAddress = plainAddress(request.socket.remoteAddress ?? "");
    const clientAddress = requestCf?.clientAddress(request, peerAddress) ?? peerAddress;
    const cf = (): string => requestCf?.forScripts(request, peerAddress, zone?.id) ?? "{}";
    const isTls = "encrypted" in request.socket;
    let description: RequestDescription | undefined;
    let ruleCf: CfObject | undefined;
    // Both are made when they are first asked for, and once: many rules may ask.
    const describe = (): RequestDescription =>
      (description ??= {
        method: request.method ?? "GET",
        url: path,
        headers: request.rawHeaders,
        host,
        tls: isTls,
        ip: clientAddress,
        httpVersion: request.httpVersionMajor === 2 ? "HTTP/2" : `HTTP/${request.httpVersion}`,
        rayId: ray,
        get cf() {
          return (ruleCf ??= requestCf?.forRules(request, peerAddress, zone?.id) ?? {});
        },
      });
    return {
      host,
      path,
      authority: asked.authority,
      zone,
      entry,
      peerAddress,
      clientAddress,
      isTls,
      cf,
      describe,
    };
  }

  /** Offers a request to the handlers from `index` on, and sends it to the origin when none of them takes it. */
  async #pass(
    index: number,
    found: Found,
    request: IncomingMessage,
    response: ServerResponse,
    path: string,
    ray: string,
  ): Promise<void> {
    for (let i = index; i < this.#handlers.length; i++) {
      const visit: EdgeVisit = {
        ...visitOf(found, request, path, ray),
        response,
        next: async (from, to, newPath) => this.#pass(i + 1, found, from, to, newPath, ray),
      };
      if (await this.#handlers[i]!(visit)) return;
    }
    const origin = await this.#route(found, request, path, ray);
    await forward(request, response, origin, this.#origins, this.#options.settings.bodyBytesMax);
  }

  async #passUpgrade(
    found: Found,
    request: IncomingMessage,
    socket: Socket,
    head: Buffer,
    ray: string,
  ): Promise<void> {
    const next: UpgradeVisit["next"] = async (from, to, first, path) => {
      const origin = await this.#route(found, from, path, ray);
      await tunnel(to, first, origin, this.#origins, this.#options.settings);
    };
    const visit: UpgradeVisit = { ...visitOf(found, request, found.path, ray), socket, head, next };
    for (const handler of this.#options.upgradeHandlers ?? []) if (await handler(visit)) return;
    await next(request, socket, head, found.path);
  }

  /** Where a request goes: the addresses behind its record, and what is sent there. */
  async #route(found: Found, request: IncomingMessage, path: string, ray: string): Promise<OriginRequest> {
    const { host, zone, entry } = found;
    if (zone === undefined || entry === undefined)
      throw isIP(host) === 0 ? visitorErrors.unknownHost() : visitorErrors.directAddress();
    const { addresses: known, port, tls, hostHeader } = await this.#origin(zone, entry, found);
    const addresses = this.#origins.choose(known, port);
    const { routing } = this.#options;
    return {
      method: request.method ?? "GET",
      path,
      addresses,
      port,
      tls,
      ray,
      route: zone.facts?.smartRouting === "on" ? routing?.route(zone.id, addresses, port, tls) : undefined,
      headers: originHeaders(forwarded(found, request, hostHeader, ray)),
    };
  }

  #target(request: IncomingMessage, settings: EdgeSettings): Target {
    try {
      return target(request, settings);
    } catch (error) {
      this.#refused.add(request.socket);
      throw error;
    }
  }

  async #origin(
    zone: EdgeZone,
    entry: HostEntry,
    { host, authority, isTls, describe }: Found,
  ): Promise<{ addresses: string[]; port: number; tls: OriginTls | undefined; hostHeader: string }> {
    let hostHeader = authority;
    let originHost: string | undefined;
    let port: number | undefined;
    let sni: string | undefined;
    // Every rule that matches has its say; where two set the same, the later one holds.
    for (const rule of zone.originRules) {
      if (!rule.matches(describe)) continue;
      hostHeader = rule.hostHeader ?? hostHeader;
      originHost = rule.host ?? originHost;
      port = rule.port ?? port;
      sni = rule.sni ?? sni;
    }
    const { snapshot, lookUp, sslMode } = this.#options;
    const addresses =
      originHost === undefined
        ? await resolveTargets(entry.targets, snapshot, lookUp)
        : await resolveName(originHost, snapshot, lookUp);
    const tls = isTls
      ? originTls(sslMode?.(zone.id) ?? "flexible", sni ?? (hostHeader === authority ? host : hostHeader))
      : undefined;
    return { addresses, port: port ?? (tls === undefined ? 80 : 443), tls, hostHeader };
  }

  #visitorError(error: unknown, request: IncomingMessage, ray: string): VisitorError {
    const { logger } = this.#options;
    const visible = error instanceof VisitorError ? error : visitorErrors.internal(error);
    const log = {
      ray,
      host: request.headers.host,
      code: visible.code,
      ...(visible.cause === undefined ? {} : { err: visible.cause }),
    };
    if (visible.code === 500) logger.error(log, "a request failed");
    else if (visible.status >= 500) logger.warn(log, visible.title);
    return visible;
  }
}

/** A request, or what a handler has made of it, as handlers see it. */
const visitOf = (found: Found, request: IncomingMessage, path: string, ray: string): Visit => ({
  request,
  host: found.host,
  authority: found.authority,
  path,
  ray,
  clientAddress: found.clientAddress,
  isTls: found.isTls,
  zone: found.entry === undefined ? undefined : found.zone,
  cf: found.cf,
  describe: found.describe,
  scriptHeaders: () => scriptHeaders(forwarded(found, request, found.authority, ray)),
});

/** A visitor's request, or what a script has made of it, on its way on. */
const forwarded = (
  { peerAddress, clientAddress, isTls }: Found,
  { rawHeaders }: IncomingMessage,
  host: string,
  ray: string,
): ForwardedRequest => ({
  rawHeaders,
  host,
  peerAddress,
  clientAddress,
  scheme: isTls ? "https" : "http",
  ray,
});

/** 16 hex characters, from the random ends of a UUID: Node draws these in advance, unlike random bytes. */
function newRay(colo: string): string {
  const uuid = randomUUID();
  return `${uuid.slice(0, 8)}${uuid.slice(28)}-${colo}`;
}
const plainAddress = (address: string): string =>
  address.startsWith("::ffff:") ? address.slice(7) : address;

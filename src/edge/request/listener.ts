import type { IncomingMessage, ServerResponse } from "node:http";
import { isIP, type AddressInfo, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { AccessRecord } from "../../platform/access-log/access-record.ts";
import type { ListenAt } from "../../platform/listen/listen.ts";
import { whileAnswering } from "../../platform/observability/last-net.ts";
import { observeClosed } from "../../platform/observability/observation.ts";
import type { Span } from "../../platform/tracing/spans/span.ts";
import type { CfObject } from "../../rules/request/cf-values.ts";
import type { RequestDescription } from "../../rules/language.ts";
import { plainAddress, scriptAddress } from "../origin/addresses.ts";
import { respondWithError, endWithErrorPage } from "./error-page.ts";
import { loopLimit, visitorError, visitorErrors, type VisitorError } from "../http/errors.ts";
import type { EdgeHandler, EdgeHttpRequest, UpgradeHandler, EdgeUpgradeRequest } from "./handlers.ts";
import { removeConsoleCookies } from "../http/console-cookies.ts";
import { sayGoingAway } from "../http/going-away.ts";
import { originHeaders } from "../http/headers.ts";
import { Http1Server } from "../http-server/server.ts";
import { Arrivals } from "./arrivals.ts";
import { bodyPrefixBytesMax, readPrefix, type BodyPrefix } from "./body-prefix.ts";
import { refuseMalformed } from "./malformed.ts";
import { Origins } from "../origin/origins.ts";
import { directTrace, originTrace } from "../origin/attempt-trace.ts";
import { forward, type OriginRequest } from "../origin/proxy.ts";
import type { EdgeOptions } from "./options.ts";
import { newRay } from "./ray.ts";
import { chooseOrigin, type AskedOrigin, type ChosenOrigin } from "../origin/choose-origin.ts";
import { edgeRequestOf, forwarded, type Found } from "./found.ts";
import type { EdgeZone, HostEntry } from "../configuration/snapshot.ts";
import { parseRequestTarget } from "./request-target.ts";
import { hopsMax, viaName, type Via } from "../http/via.ts";
import { servedEntry } from "./served-entry.ts";
import { isWebSocket, joinOriginWebSocket } from "../origin/upgrade.ts";
import { unawaited } from "../../platform/util/uncaught.ts";

/** The edge: finds the zone of each request in memory and proxies the request to its origin. */
export class Edge {
  readonly #options: EdgeOptions;
  readonly #origins: Origins;
  #handlers: readonly EdgeHandler[];
  #upgradeHandlers: readonly UpgradeHandler[];
  readonly #server: Http1Server;
  readonly #webSockets = new Set<Socket>();
  /** In edge processes. */
  readonly #arrivals: Arrivals | undefined;

  constructor(options: EdgeOptions) {
    const { settings, mainChannel } = options;
    this.#options = options;
    this.#arrivals = mainChannel && new Arrivals(mainChannel, (...arrival) => this.#answer(...arrival));
    this.#handlers = options.handlers ?? [];
    this.#upgradeHandlers = options.upgradeHandlers ?? [];
    this.#origins = options.origins ?? new Origins(settings, options.policy);
    this.#server = new Http1Server(settings, {
      serve: (request, response) => this.serve(request, response),
      isUpgrade: isWebSocket,
      serveUpgrade: (request, socket, head) => this.serveUpgrade(request, socket, head),
      refuse: (error, socket, bytes) => refuseMalformed(error, socket, bytes, newRay(settings.colo)),
    });
  }

  /** Replaces the handlers, before it listens. */
  use(handlers: readonly EdgeHandler[], upgradeHandlers: readonly UpgradeHandler[]): void {
    this.#handlers = handlers;
    this.#upgradeHandlers = upgradeHandlers;
  }

  async listen(at: ListenAt): Promise<AddressInfo> {
    return this.#server.listen(at);
  }

  /** Serves HTTP/1.1 on a connection that another listener accepted, for TLS. */
  accept(socket: Duplex): void {
    this.#server.accept(socket);
  }

  /** Serves a request of another server, for HTTP/2. */
  serve(request: IncomingMessage, response: ServerResponse): void {
    if (this.#arrivals === undefined) this.#answer(request, response, true);
    else this.#arrivals.add(request, response);
  }

  /** `isCurrent`: whether every change is in effect that the API acknowledged before the request was sent. */
  #answer(request: IncomingMessage, response: ServerResponse, isCurrent: boolean): void {
    const ray = newRay(this.#options.settings.colo);
    const fail = (): void => respondWithError(request, response, visitorErrors.internal(), ray);
    whileAnswering(response, fail, () => {
      unawaited(
        this.#serve(request, response, ray, isCurrent).catch((error: unknown) => {
          this.#options.logger.error({ err: error }, "a response could not be written");
          response.destroy();
        }),
      );
    });
  }

  /** Serves an upgrade of another server. */
  serveUpgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const fail = (): void => {
      socket.destroy();
    };
    whileAnswering(socket, fail, () => unawaited(this.#upgrade(request, socket, head)));
  }

  /** The listening address; undefined while not listening. */
  get address(): AddressInfo | undefined {
    return this.#server.address;
  }

  /** Numbers of open connections: of HTTP/1, also over TLS, and of WebSockets among them. */
  get open(): { connections: number; webSockets: number } {
    return { connections: this.#server.open, webSockets: this.#webSockets.size };
  }

  /** The origin of a request. Rejects with a visitor error if its name cannot be resolved. */
  async originOf(zone: EdgeZone, entry: HostEntry, asked: AskedOrigin): Promise<ChosenOrigin> {
    return chooseOrigin(zone, entry, asked, this.#options);
  }

  /** From now on, each response ends its connection. */
  announceEnd(): void {
    this.#server.announceEnd();
  }

  /** Stops accepting, finishes running requests until the deadline, and aborts the rest. */
  async close(deadlineMs: number): Promise<void> {
    const deadline = setTimeout(() => this.#webSockets.forEach((socket) => socket.destroy()), deadlineMs);
    this.#webSockets.forEach(sayGoingAway);
    await this.#server.drain(deadlineMs);
    clearTimeout(deadline);
    this.#webSockets.forEach((socket) => socket.destroy());
    this.#origins.close();
  }

  async #serve(
    request: IncomingMessage,
    response: ServerResponse,
    ray: string,
    isCurrent: boolean,
  ): Promise<void> {
    // Its client may go on in another protocol.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false;
    const { accessLog, observe, traces, mainChannel } = this.#options;
    const startMs = performance.now();
    let found: Found | undefined;
    let record: AccessRecord | undefined;
    let span: Span | undefined;
    // One listener for everything that ends with the response: with two, the others of a request cost more, too.
    response.on("close", () => {
      const endMs = performance.now();
      if (observe !== undefined) observeClosed(response, request, observe, startMs, endMs, found?.zone?.name);
      if (record !== undefined) accessLog!.end(record, endMs);
      if (span !== undefined) traces!.end(span, response);
    });
    // First of all: a change may also say which requests are logged.
    const isStale = !isCurrent && !(await mainChannel!.becomesCurrent());
    if (response.destroyed) return;
    record = accessLog?.begin(request, response, ray, startMs);
    span = traces?.begin(request, record);
    try {
      if (isStale) throw visitorErrors.stale();
      found = this.#find(request, ray, { record, span });
      if (record !== undefined) accessLog!.sees(record, found);
      if (span !== undefined) traces!.sees(span, request, ray, found);
      // A request that a handler passes on instead may have another body, or none.
      if (found.zone?.readsBody === true) await found.readBody();
      await this.#pass(0, found, request, response, found.path, ray);
    } catch (error) {
      respondWithError(request, response, this.#visitorError(error, request, ray), ray);
    }
  }

  async #upgrade(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    const ray = newRay(this.#options.settings.colo);
    this.#webSockets.add(socket);
    socket.on("close", () => this.#webSockets.delete(socket));
    socket.on("error", () => socket.destroy());
    const { accessLog, traces, mainChannel } = this.#options;
    const isStale = mainChannel?.isCurrent === false && !(await mainChannel.becomesCurrent());
    if (socket.destroyed) return;
    const record = accessLog?.beginUpgrade(request, socket, ray);
    const span = traces?.begin(request, record);
    if (span?.isSampled === true) socket.on("close", () => traces!.end(span, socket));
    try {
      if (isStale) throw visitorErrors.stale();
      const found = this.#find(request, ray, { record, span });
      if (record !== undefined) accessLog!.sees(record, found);
      if (span !== undefined) traces!.sees(span, request, ray, found);
      await this.#passUpgrade(found, request, socket, head, ray);
    } catch (error) {
      const refusal = this.#visitorError(error, request, ray);
      endWithErrorPage(socket, request, refusal, ray);
    }
  }

  /** The zone and the record of a request. Throws when the zone is paused or the record is not proxied. */
  #find(request: IncomingMessage, ray: string, { record, span }: Pick<Found, "record" | "span">): Found {
    const { snapshot, settings, requestCf, viaHeader } = this.#options;
    removeConsoleCookies(request);
    const asked = parseRequestTarget(request, settings);
    const { host, path } = asked;
    if (this.#options.isStale?.() === true) throw visitorErrors.stale();
    const zone = snapshot.findZone(host);
    const entry = servedEntry(zone, host);
    const viaText = request.headers[viaName];
    const via = typeof viaText === "string" ? viaHeader?.read(viaText, host) : undefined;
    if (via !== undefined && via.hops > hopsMax) throw loopLimit();
    const peerAddress = via === undefined ? plainAddress(request.socket.remoteAddress ?? "") : scriptAddress;
    const clientAddress = requestCf?.clientAddress(request, peerAddress) ?? peerAddress;
    const cf = (): string => requestCf?.forScripts(request, peerAddress, zone?.id) ?? "{}";
    const isTls = "encrypted" in request.socket;
    let description: RequestDescription | undefined;
    let body: BodyPrefix | undefined;
    let ruleCf: CfObject | undefined;
    // Both are computed on first use and cached, because many rules may read them.
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
        get body() {
          return body;
        },
      });
    const readBody = async (): Promise<void> => {
      body ??= await readPrefix(request, bodyPrefixBytesMax(settings, zone));
    };
    return {
      host,
      path,
      authority: asked.authority,
      zone,
      entry,
      peerAddress,
      clientAddress,
      isTls,
      via,
      cf,
      describe,
      readBody,
      record,
      span,
    };
  }

  /** Offers a request to the handlers from `index` on, and sends it to the origin when none takes it. */
  async #pass(
    index: number,
    found: Found,
    request: IncomingMessage,
    response: ServerResponse,
    path: string,
    ray: string,
    via = found.via,
  ): Promise<void> {
    let at = index;
    const edgeRequest: EdgeHttpRequest = {
      ...edgeRequestOf(found, request, path, ray, via),
      response,
      next: async (from, to, newPath, newVia = via) =>
        this.#pass(at + 1, found, from, to, newPath, ray, newVia),
      nextUpgrade: this.#toOrigin(found, ray, via),
    };
    for (; at < this.#handlers.length; at++) {
      const taken = this.#handlers[at]!(edgeRequest);
      if (taken !== false && (await taken)) return;
    }
    const origin = await this.#route(found, request, path, ray, via);
    await forward(request, response, origin, this.#origins, this.#options.settings.bodyBytesMax);
  }

  async #passUpgrade(
    found: Found,
    request: IncomingMessage,
    socket: Socket,
    head: Buffer,
    ray: string,
  ): Promise<void> {
    const nextUpgrade = this.#toOrigin(found, ray, found.via);
    const edgeRequest: EdgeUpgradeRequest = {
      ...edgeRequestOf(found, request, found.path, ray, found.via),
      socket,
      head,
      next: async (from, to, path, via = found.via) =>
        this.#pass(this.#handlers.length, found, from, to, path, ray, via),
      nextUpgrade,
    };
    for (const handler of this.#upgradeHandlers) if (await handler(edgeRequest)) return;
    await nextUpgrade(request, socket, head, found.path);
  }

  #toOrigin(found: Found, ray: string, known: Via | undefined): EdgeUpgradeRequest["nextUpgrade"] {
    return async (from, to, first, path, via = known) => {
      const origin = await this.#route(found, from, path, ray, via);
      await joinOriginWebSocket(to, first, origin, this.#origins, this.#options.settings);
    };
  }

  /** The destination of a request: the addresses of its record, and the request to send there. */
  async #route(
    found: Found,
    request: IncomingMessage,
    path: string,
    ray: string,
    via: Via | undefined,
  ): Promise<OriginRequest> {
    const { host, zone, entry } = found;
    if (zone === undefined || entry === undefined)
      throw isIP(host) === 0 ? visitorErrors.unknownHost() : visitorErrors.directAddress();
    const { addresses: known, port, tls, hostHeader } = await this.originOf(zone, entry, found);
    const addresses = this.#origins.choose(known, port);
    const { viaHeader } = this.#options;
    const routing = zone.configuration?.smartRouting === "on" ? this.#options.routing : undefined;
    const span = via?.span ?? found.span;
    const headers = originHeaders({
      ...forwarded(found, request, hostHeader, ray),
      via: via && viaHeader?.write(via, hostHeader),
    });
    return {
      tenant: zone.configuration?.accountId ?? zone.id,
      method: request.method ?? "GET",
      path,
      addresses,
      port,
      tls,
      ray,
      record: found.record,
      trace: routing === undefined ? directTrace(span, headers) : originTrace(span),
      route: routing?.route(zone.id, addresses, port, tls),
      headers,
    };
  }

  #visitorError(error: unknown, request: IncomingMessage, ray: string): VisitorError {
    const { logger } = this.#options;
    const visible = visitorError(error);
    this.#options.onError?.(visible.code);
    const cause = visible.cause === undefined ? {} : { err: visible.cause };
    const log = { ray, host: request.headers.host, code: visible.code, ...cause };
    if (visible.code === 500) logger.error(log, "a request failed");
    else if (visible.status >= 500) logger.warn(log, visible.title);
    return visible;
  }
}

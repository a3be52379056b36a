import type { IncomingMessage, ServerResponse } from "node:http";
import { isIP, type Socket } from "node:net";
import { AddressPolicy } from "./address-policy.ts";
import { visitorErrors } from "../http/errors.ts";
import { outboundHeaders } from "../http/headers.ts";
import { Origins } from "./origins.ts";
import type { OwnHosts } from "../configuration/own-hosts.ts";
import { forward, type OriginRequest } from "./proxy.ts";
import type { OutboundSockets } from "./outbound-sockets.ts";
import { addressesOf, type LookUp } from "./resolve.ts";
import type { EdgeSettings } from "../http/settings.ts";
import { placeholder } from "./under-test.ts";
import { joinOriginWebSocket } from "./upgrade.ts";
import type { Tracer } from "../../platform/tracing/spans/tracer.ts";
import { viaName, type Via, type ViaHeader } from "../http/via.ts";

/**
 * Sends `request` to `url` and pipes the result to `response`. Rejects only while nothing has been sent to
 * `response`.
 */
export type Send = (url: URL, request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** The sender of an outgoing request, and the requests that led to it. */
export interface Sender {
  accountId: string;
  via: Via;
  /** The address of the visitor whose request caused it, if any. */
  clientAddress?: string | undefined;
}

/**
 * Fetches for scripts: public addresses only, unless configured otherwise. Hosts of this installation are
 * found in memory and requested from its own edge, as visitors do.
 */
export class Outbound {
  readonly sockets: OutboundSockets;
  readonly #origins: Origins;
  readonly #lookUp: LookUp;
  readonly #settings: EdgeSettings;
  readonly #viaHeader: ViaHeader;
  readonly #tracer: Tracer | undefined;
  /** Connections to this installation's own edge. */
  readonly #toEdge: Origins;
  #ownHosts: OwnHosts | undefined;

  /** `origins` are the connections for scripts. */
  constructor(
    origins: Origins,
    lookUp: LookUp,
    settings: EdgeSettings,
    viaHeader: ViaHeader,
    sockets: OutboundSockets,
    tracer?: Tracer,
  ) {
    this.#tracer = tracer;
    this.sockets = sockets;
    this.#origins = origins;
    this.#lookUp = lookUp;
    this.#settings = settings;
    this.#viaHeader = viaHeader;
    this.#toEdge = new Origins(
      { ...settings, originSourceAddress: undefined, originConnectionsMax: toEdgeMax },
      new AddressPolicy("all"),
    );
  }

  /** Routes fetches of these hosts to this installation's edge from now on. */
  serve(ownHosts: OwnHosts): void {
    this.#ownHosts = ownHosts;
    this.sockets.serve(ownHosts);
  }

  close(): void {
    this.#origins.close();
    this.#toEdge.close();
  }

  /** Sends a script's request to its URL. Rejects with a visitor error while nothing has been sent. */
  async fetch(url: URL, request: IncomingMessage, response: ServerResponse, sender: Sender): Promise<void> {
    const { origins, ...to } = await this.#route(url, request, sender);
    await forward(request, response, to, origins, this.#settings.bodyBytesMax);
  }

  /** Connects a script's WebSocket to its URL. Rejects as `fetch` does. */
  async upgrade(
    url: URL,
    request: IncomingMessage,
    socket: Socket,
    head: Buffer,
    sender: Sender,
  ): Promise<void> {
    const { origins, ...to } = await this.#route(url, request, sender);
    await joinOriginWebSocket(socket, head, to, origins, this.#settings);
  }

  async #route(
    url: URL,
    request: IncomingMessage,
    { accountId, via, clientAddress }: Sender,
  ): Promise<OriginRequest & { origins: Origins }> {
    const isTls = url.protocol === "https:" || url.protocol === "wss:";
    if (!isTls && url.protocol !== "http:" && url.protocol !== "ws:")
      throw visitorErrors.badRequest(`Expected an http or https URL but received ${url.protocol}`);
    const port = url.port === "" ? (isTls ? 443 : 80) : Number(url.port);
    const host = url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname;
    const headers = outboundHeaders(request.rawHeaders, url.host, clientAddress);
    headers.push(viaName, this.#viaHeader.write(via, host));
    const own = this.#ownHosts?.find(host, port, isTls);
    const { span } = via;
    const tracer = own !== undefined && "listener" in own ? this.#tracer : undefined;
    const shared = {
      trace: span === undefined ? undefined : { span, name: "fetch" as const, tracer, isWritten: false },
      tenant: accountId,
      method: request.method ?? "GET",
      path: url.pathname + url.search,
      headers,
      ray: "",
      route: undefined,
    };
    if (own !== undefined && "listener" in own) {
      const { listener } = own;
      return {
        ...shared,
        origins: this.#toEdge,
        addresses: [listener.address],
        port: listener.port,
        // The certificate need not be verified: the address is this edge's.
        tls: listener.isTls ? { servername: host, isVerified: false } : undefined,
      };
    }
    return {
      ...shared,
      origins: this.#origins,
      addresses:
        this.#origins.underTest.hooks?.answers(shared.method, url) === true
          ? [placeholder]
          : this.#origins.choose(await addressesOf(host, own?.targets, this.#lookUp), port),
      port,
      tls: isTls ? { servername: isIP(host) === 0 ? host : "", isVerified: true } : undefined,
    };
  }
}

/**
 * Never reached, because an account's subrequests are limited to less. With a low limit, scripts that fetch
 * each other would wait for each other's connections forever.
 */
const toEdgeMax = 100_000;

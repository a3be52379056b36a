import type { IncomingMessage, ServerResponse } from "node:http";
import { isIP, type Socket } from "node:net";
import { VisitorError, visitorErrors } from "./errors.ts";
import { externalHeaders } from "./headers.ts";
import type { Origins } from "./origins.ts";
import { forward, type OriginRequest } from "./proxy.ts";
import type { LookUp } from "./resolve.ts";
import type { EdgeSettings } from "./settings.ts";
import { tunnel } from "./upgrade.ts";

/** Fetches what scripts ask for from the outside: public addresses only, unless the operator says otherwise. */
export class Outbound {
  readonly #origins: Origins;
  readonly #lookUp: LookUp;
  readonly #settings: EdgeSettings;

  /** `origins` are connections on the wish of scripts. */
  constructor(origins: Origins, lookUp: LookUp, settings: EdgeSettings) {
    this.#origins = origins;
    this.#lookUp = lookUp;
    this.#settings = settings;
  }

  /** Sends a script's request to where its URL says. Rejects with a visitor error while nothing has been sent. */
  async fetch(url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
    await forward(
      request,
      response,
      await this.#route(url, request),
      this.#origins,
      this.#settings.bodyBytesMax,
    );
  }

  /** Joins a script's connection with the WebSocket that its URL says. Rejects as `fetch` does. */
  async upgrade(url: URL, request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    await tunnel(socket, head, await this.#route(url, request), this.#origins, this.#settings);
  }

  async #route(url: URL, request: IncomingMessage): Promise<OriginRequest> {
    const isTls = url.protocol === "https:" || url.protocol === "wss:";
    if (!isTls && url.protocol !== "http:" && url.protocol !== "ws:")
      throw visitorErrors.badRequest(`Expected an http or https URL but received ${url.protocol}`);
    const port = url.port === "" ? (isTls ? 443 : 80) : Number(url.port);
    const host = url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname;
    return {
      method: request.method ?? "GET",
      path: url.pathname + url.search,
      headers: externalHeaders(request.rawHeaders, url.host),
      addresses: this.#origins.choose(await this.#resolve(host), port),
      port,
      tls: isTls ? { servername: isIP(host) === 0 ? host : "", isVerified: true } : undefined,
      ray: "",
      route: undefined,
    };
  }

  async #resolve(host: string): Promise<string[]> {
    if (isIP(host) !== 0) return [host];
    try {
      return await this.#lookUp(host);
    } catch (error) {
      throw error instanceof VisitorError ? error : visitorErrors.noOrigin(error);
    }
  }
}

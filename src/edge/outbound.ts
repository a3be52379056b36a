import type { IncomingMessage, ServerResponse } from "node:http";
import { isIP } from "node:net";
import { VisitorError, visitorErrors } from "./errors.ts";
import { externalHeaders } from "./headers.ts";
import type { Origins } from "./origins.ts";
import { forward } from "./proxy.ts";
import type { LookUp } from "./resolve.ts";

/** Fetches what scripts ask for from the outside: public addresses only, unless the operator says otherwise. */
export class Outbound {
  readonly #origins: Origins;
  readonly #lookUp: LookUp;
  readonly #bodyBytesMax: number;

  /** `origins` are connections on the wish of scripts. */
  constructor(origins: Origins, lookUp: LookUp, bodyBytesMax: number) {
    this.#origins = origins;
    this.#lookUp = lookUp;
    this.#bodyBytesMax = bodyBytesMax;
  }

  /** Sends a script's request to where its URL says. Rejects with a visitor error while nothing has been sent. */
  async fetch(url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const isTls = url.protocol === "https:";
    if (!isTls && url.protocol !== "http:")
      throw visitorErrors.badRequest(`Expected an http or https URL but received ${url.protocol}`);
    const port = url.port === "" ? (isTls ? 443 : 80) : Number(url.port);
    const host = url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname;
    const addresses = this.#origins.choose(await this.#resolve(host), port);
    await forward(
      request,
      response,
      {
        method: request.method ?? "GET",
        path: url.pathname + url.search,
        headers: externalHeaders(request.rawHeaders, url.host),
        addresses,
        port,
        tls: isTls ? { servername: isIP(host) === 0 ? host : "", isVerified: true } : undefined,
        ray: "",
        route: undefined,
      },
      this.#origins,
      this.#bodyBytesMax,
    );
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

import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { visitorErrors } from "../http/errors.ts";
import { asciiJson } from "../../platform/util/ascii-json.ts";
import type { ScoredRequest } from "./bot-management.ts";
import type { BotManagement } from "./bot-score.ts";
import { connectionFields } from "./connection.ts";
import type { CfObject } from "../../rules/request/cf-values.ts";
import { isEuropeanUnion } from "./countries.ts";
import type { GeoSource } from "./geo-source.ts";
import type { TrustedProxies } from "./trusted-proxies.ts";

export interface RequestCfOptions {
  /** Location code of this node. */
  colo: string;
  geo: GeoSource;
  proxies: TrustedProxies;
  score: (zoneId: string, request: ScoredRequest, path: string) => BotManagement | undefined;
}

/** A JSON object of `request.cf` properties, accepted from trusted proxies only and not passed on. */
export const cfHeader = "selvedge-cf";

/** Properties that a trusted proxy may set, because it sees the client's connection and may locate it better. */
const overridable: ReadonlySet<string> = new Set(
  (
    "asn asOrganization botManagement city clientTcpRtt colo continent country httpProtocol isEUCountry latitude " +
    "longitude metroCode postalCode region regionCode requestPriority timezone tlsCipher tlsVersion"
  ).split(" "),
);

const keptMsMax = 5000;

/** Builds the `cf` object of requests: location, connection and bot score of the client. */
export class RequestCf {
  readonly #options: RequestCfOptions;
  readonly #last = new WeakMap<Socket, { key: string; text: string; madeAt: number }>();

  constructor(options: RequestCfOptions) {
    this.#options = options;
  }

  /** Whether a connection comes from a trusted proxy. */
  trusts(peer: string): boolean {
    return this.#options.proxies.trusts(peer);
  }

  /** The client's address, for a connection from `peer`. */
  clientAddress(request: IncomingMessage, peer: string): string {
    return this.#options.proxies.clientAddress(request, peer);
  }

  /**
   * The object for scripts, as JSON in ASCII. Requests on one connection usually have the same object, so it
   * is cached for a while with the connection, unless the request or the zone may change it. Geo files may be
   * replaced in the meantime.
   */
  forScripts(request: IncomingMessage, peer: string, zoneId: string | undefined): string {
    const score = this.#score(request, zoneId);
    if (score !== undefined || this.#options.proxies.trusts(peer))
      return asciiJson(shownToScripts(this.#properties(request, peer, score)));
    const { socket, httpVersion, headers } = request;
    const key = [httpVersion, headers["priority"], headers["accept-encoding"]].join("\n");
    const last = this.#last.get(socket);
    const now = performance.now();
    if (last?.key === key && now - last.madeAt < keptMsMax) return last.text;
    const text = asciiJson(shownToScripts(this.#properties(request, peer, undefined)));
    this.#last.set(socket, { key, text, madeAt: now });
    return text;
  }

  /** The object for rules, which has more properties than the one for scripts. */
  forRules(request: IncomingMessage, peer: string, zoneId: string | undefined): CfObject {
    const { localAddress, localPort } = request.socket;
    return {
      ...this.#properties(request, peer, this.#score(request, zoneId)),
      edgeServerIp: localAddress?.replace(/^::ffff:(?=\d+\.)/, ""),
      edgeServerPort: localPort,
    };
  }

  /** The object for rules of a request that is only traced: the properties known from its address, path and headers. */
  forTrace(
    { ip, path, headers }: { ip: string; path: string; headers: IncomingHttpHeaders },
    zoneId: string,
  ): CfObject {
    const { colo, geo, score } = this.#options;
    const botManagement = score(zoneId, { headers }, path);
    return {
      colo,
      country: null,
      ...geo.lookUp(ip),
      ...(botManagement === undefined ? {} : { botManagement }),
    };
  }

  /** Undefined when the zone has no bot management. */
  #score(request: IncomingMessage, zoneId: string | undefined): BotManagement | undefined {
    return zoneId === undefined ? undefined : this.#options.score(zoneId, request, request.url ?? "/");
  }

  #properties(
    request: IncomingMessage,
    peer: string,
    botManagement: BotManagement | undefined,
  ): Record<string, unknown> {
    const { colo, geo, proxies } = this.#options;
    return {
      colo,
      country: null,
      ...geo.lookUp(this.clientAddress(request, peer)),
      ...connectionFields(request),
      ...(botManagement === undefined ? {} : { botManagement }),
      ...(proxies.trusts(peer) ? overrides(request) : {}),
    };
  }
}

function shownToScripts(properties: Record<string, unknown>): CfObject {
  const { subdivision2Code: _, ...cf } = properties;
  return cf;
}

function overrides(request: IncomingMessage): Record<string, unknown> {
  const header = request.headers[cfHeader];
  if (header === undefined) return {};
  const given = parseObject(String(header));
  const unknown = Object.keys(given).find((property) => !overridable.has(property));
  if (unknown !== undefined)
    throw visitorErrors.badRequest(`The header ${cfHeader} has no property "${unknown}".`);
  const { country } = given;
  if (typeof country !== "string" || "isEUCountry" in given) return given;
  return { ...given, isEUCountry: isEuropeanUnion(country) ? "1" : undefined };
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, "latin1").toString("utf8"));
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
  } catch {
    // the error below applies
  }
  throw visitorErrors.badRequest(`The header ${cfHeader} is not a JSON object.`);
}

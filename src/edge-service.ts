import type { AddressInfo } from "node:net";
import type { Logger } from "pino";
import type { Config } from "./config/settings.ts";
import { AddressPolicy } from "./edge/address-policy.ts";
import { Edge } from "./edge/listener.ts";
import { systemLookUp } from "./edge/resolve.ts";
import { Origins } from "./edge/origins.ts";
import { edgeDefaults } from "./edge/settings.ts";
import { EdgeFeed } from "./edge/feed.ts";
import { noGeo, type GeoSource } from "./request-cf/geo-source.ts";
import { RequestCf } from "./request-cf/request-cf.ts";
import { TrustedProxies } from "./request-cf/trusted-proxies.ts";
import type { Services } from "./services.ts";
import { relayHandler } from "./smart-routing/relay-handler.ts";
import { parseRelay, Relays } from "./smart-routing/relays.ts";
import { SmartRouting } from "./smart-routing/routing.ts";
import type { Storage } from "./storage/storage.ts";

export interface EdgeService {
  listen(host: string, port: number): Promise<AddressInfo>;
  /** Makes sure that nobody is led to this listener of the node's own. */
  forbid(address: AddressInfo): void;
  close(deadlineMs: number): Promise<void>;
}

/** Fills the edge's memory from storage, keeps it current, and puts the listener on it. */
export async function startEdge(
  config: Config,
  services: Services,
  storage: Storage,
  logger: Logger,
  onLoopback: boolean,
): Promise<EdgeService> {
  const policy = new AddressPolicy(config.privateNetworks ?? (onLoopback ? "origins" : "deny"));
  const feed = new EdgeFeed(storage, services.rulesets);
  services.zones.onChange((id, zone) => feed.setZone(id, zone));
  await services.zones.load();
  await feed.load();
  const settings = { ...edgeDefaults, colo: config.colo, originSourceAddress: config.originSourceAddress };
  const origins = new Origins(settings, policy);
  const { relaySecret } = config;
  if (config.relays.length > 0 && relaySecret === undefined)
    throw new Error("Expected a value for relay-secret, as relays are set, but received none");
  const relays = new Relays(config.relays.map(parseRelay), relaySecret ?? "", settings);
  const geo = await openGeo(config, logger);
  const edge = new Edge({
    settings,
    requestCf: new RequestCf({
      colo: config.colo,
      geo,
      proxies: new TrustedProxies(config.trustedProxies),
      score: (zoneId, request, path) => services.botManagement.score(zoneId, request, path),
    }),
    origins,
    routing: new SmartRouting(origins, relays, services.smartRouting),
    handlers: relaySecret === undefined ? [] : [relayHandler(relaySecret, origins, settings.bodyBytesMax)],
    snapshot: feed.snapshot,
    policy,
    lookUp: systemLookUp(),
    logger,
  });
  return {
    listen: (host, port) => edge.listen(host, port),
    forbid: (address) => policy.forbidListener(address.port),
    async close(deadlineMs) {
      await edge.close(deadlineMs);
      await relays.close();
      geo.close();
    },
  };
}

/** The databases of addresses that the configuration names; loaded, like their reader, only where it names one. */
async function openGeo({ geoCity, geoAsn }: Config, logger: Logger): Promise<GeoSource> {
  if (geoCity === undefined && geoAsn === undefined) return noGeo;
  const { GeoDatabase } = await import("./request-cf/geo.ts");
  const warn = (error: Error): void => logger.warn({ err: error }, "the addresses known before stay in use");
  return GeoDatabase.open({ city: geoCity, asn: geoAsn }, warn);
}

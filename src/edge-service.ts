import type { AddressInfo } from "node:net";
import type { Logger } from "pino";
import type { Config } from "./config/settings.ts";
import type { AddressPolicy } from "./edge/address-policy.ts";
import type { EdgeHandler } from "./edge/handlers.ts";
import { Edge } from "./edge/listener.ts";
import { systemLookUp } from "./edge/resolve.ts";
import { Origins } from "./edge/origins.ts";
import { edgeDefaults, type EdgeSettings } from "./edge/settings.ts";
import { EdgeFeed } from "./edge/feed.ts";
import { noGeo, type GeoSource } from "./request-cf/geo-source.ts";
import { RequestCf } from "./request-cf/request-cf.ts";
import { TrustedProxies } from "./request-cf/trusted-proxies.ts";
import type { Services } from "./services.ts";
import { scriptHandlers } from "./runtime/edge-handler.ts";
import { relayHandler } from "./smart-routing/relay-handler.ts";
import { parseRelay, Relays } from "./smart-routing/relays.ts";
import { Probes } from "./smart-routing/probes.ts";
import { SmartRouting } from "./smart-routing/routing.ts";
import { snippetHandler } from "./snippets/chain.ts";
import type { TlsListener } from "./tls/listener.ts";
import { schemeHandler } from "./tls/scheme-handler.ts";
import type { Storage } from "./storage/storage.ts";

export interface EdgeService {
  listen(host: string, port: number): Promise<AddressInfo>;
  /** The same over TLS, with an authority of its own in the folder for names that have no other certificate. */
  listenTls(host: string, port: number, authorityDir: string): Promise<AddressInfo>;
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
  policy: AddressPolicy,
  settings: EdgeSettings,
): Promise<EdgeService> {
  const feed = new EdgeFeed(storage, services.records, services.rulesets);
  services.zones.onChange((id, zone) => feed.setZone(id, zone));
  await services.zones.load();
  await feed.load();
  const origins = new Origins(settings, policy);
  const { relaySecret } = config;
  if (config.relays.length > 0 && relaySecret === undefined)
    throw new Error("Expected a value for relay-secret, as relays are set, but received none");
  const relays = new Relays(config.relays.map(parseRelay), relaySecret ?? "", settings);
  const geo = await openGeo(config, logger);
  const ports: Record<"http" | "https", number | undefined> = { http: undefined, https: undefined };
  let tls: TlsListener | undefined;
  const lookUp = systemLookUp();
  const { snippets, cells, outbound, runtime, scriptRouter } = services;
  const snippetLimits = {
    cpuMs: config.snippetCpuMs,
    memoryBytes: config.snippetMemoryMegabytes * 1024 * 1024,
    bodyBytesMax: settings.bodyBytesMax,
  };
  const scripts = scriptHandlers(scriptRouter, runtime, logger);
  const smartRouting = new SmartRouting(origins, relays, services.smartRouting, logger);
  const probes = new Probes(relays, () => smartRouting.setAside(), logger);
  const edge = new Edge({
    settings,
    requestCf: new RequestCf({
      colo: config.colo,
      geo,
      proxies: new TrustedProxies(config.trustedProxies),
      score: (zoneId, request, path) => services.botManagement.score(zoneId, request, path),
    }),
    origins,
    sslMode: (zoneId) => services.zoneSettings.value(zoneId, "ssl"),
    routing: smartRouting,
    observe: services.metrics?.edge,
    handlers: [
      ...(relaySecret === undefined ? [] : [relayHandler(relaySecret, origins, settings.bodyBytesMax)]),
      ...(config.acmeDirectory === undefined ? [] : [await answerChallenges(storage)]),
      ...(config.edgeTlsListen === undefined ? [] : [schemeHandler(services.zoneSettings, () => ports)]),
      services.images.delivery.handler,
      snippetHandler({ snippets, cells, outbound, limits: snippetLimits, logger }),
      scripts.handler,
    ],
    upgradeHandlers: [scripts.upgradeHandler],
    snapshot: feed.snapshot,
    policy,
    lookUp,
    logger,
  });
  return {
    async listen(host, port) {
      const address = await edge.listen(host, port);
      probes.start();
      ports.http = address.port;
      return address;
    },
    async listenTls(host, port, authorityDir) {
      const { startTls } = await import("./tls/start.ts");
      tls = await startTls({
        config,
        services,
        storage,
        edge,
        settings,
        snapshot: feed.snapshot,
        logger,
        authorityDir,
      });
      const address = await tls.listen(host, port);
      ports.https = address.port;
      return address;
    },
    forbid: (address) => policy.forbidListener(address.port),
    async close(deadlineMs) {
      probes.stop();
      await Promise.all([edge.close(deadlineMs), tls?.close(deadlineMs)]);
      await relays.close();
      geo.close();
    },
  };
}

async function answerChallenges(storage: Storage): Promise<EdgeHandler> {
  const { challengeHandler, Challenges } = await import("./tls/acme/challenges.ts");
  return challengeHandler(new Challenges(storage));
}

/** The limits of the edge, with what the configuration says of them. */
export const edgeSettings = async ({
  colo,
  originSourceAddress,
  originCa,
}: Config): Promise<EdgeSettings> => ({
  ...edgeDefaults,
  colo,
  originSourceAddress,
  originCa: originCa.length === 0 ? undefined : await trusted(originCa),
});

/** The databases of addresses that the configuration names; loaded, like their reader, only where it names one. */
async function openGeo({ geoCity, geoAsn }: Config, logger: Logger): Promise<GeoSource> {
  if (geoCity === undefined && geoAsn === undefined) return noGeo;
  const { GeoDatabase } = await import("./request-cf/geo.ts");
  const warn = (error: Error): void => logger.warn({ err: error }, "the addresses known before stay in use");
  return GeoDatabase.open({ city: geoCity, asn: geoAsn }, warn);
}

/** The authorities that Node trusts, and those of the files. */
async function trusted(files: readonly string[]): Promise<string[]> {
  const [{ rootCertificates }, { readFileSync }] = await Promise.all([import("node:tls"), import("node:fs")]);
  return [...rootCertificates, ...files.map((file) => readFileSync(file, "utf8"))];
}

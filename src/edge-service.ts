import type { AddressInfo } from "node:net";
import type { Logger } from "pino";
import type { Config } from "./platform/config/settings.ts";
import type { AddressPolicy } from "./edge/origin/address-policy.ts";
import type { EdgeHandler } from "./edge/request/handlers.ts";
import { Edge } from "./edge/request/listener.ts";
import { isLocalVisitor } from "./edge/request/local-visitor.ts";
import { systemLookUp } from "./edge/origin/resolve.ts";
import { Origins } from "./edge/origin/origins.ts";
import { OwnHosts } from "./edge/configuration/own-hosts.ts";
import { edgeDefaults, type EdgeSettings } from "./edge/request/settings.ts";
import { EdgeSnapshotUpdater } from "./edge/configuration/snapshot-updater.ts";
import { noGeo, type GeoSource } from "./edge/client-info/geo-source.ts";
import { RequestCf } from "./edge/client-info/request-cf.ts";
import { TrustedProxies } from "./edge/client-info/trusted-proxies.ts";
import type { Services } from "./services.ts";
import { scriptHandlers } from "./workers/runtime/edge-handler.ts";
import { relayHandler } from "./edge/smart-routing/relay-handler.ts";
import { parseRelay, Relays } from "./edge/smart-routing/relays.ts";
import { Probes } from "./edge/smart-routing/probes.ts";
import { SmartRouting } from "./edge/smart-routing/routing.ts";
import { snippetHandler } from "./products/snippets/chain.ts";
import type { TlsListener } from "./edge/tls/listener.ts";
import { schemeHandler } from "./edge/tls/scheme-handler.ts";
import type { ListenAt } from "./platform/listen/listen.ts";
import type { Storage } from "./platform/storage/storage.ts";

export interface EdgeService {
  listen(at: ListenAt): Promise<AddressInfo>;
  /** Listens for TLS. The local authority in `authorityDir` issues certificates for names without another one. */
  listenTls(at: ListenAt, authorityDir: string): Promise<AddressInfo>;
  /** Forbids connections to a listener of this node, such as the API. */
  forbid(address: AddressInfo): void;
  /** Reads certificate and geo files again. */
  reload(): Promise<void>;
  /** Asks visitors to open their next connections elsewhere. Everything is still served. */
  announceEnd(): void;
  close(deadlineMs: number): Promise<void>;
}

/** Creates the edge: loads its snapshot from storage, keeps the snapshot current, and prepares the listeners. */
export async function startEdge(
  config: Config,
  services: Services,
  storage: Storage,
  logger: Logger,
  policy: AddressPolicy,
  settings: EdgeSettings,
): Promise<EdgeService> {
  const snapshotUpdater = new EdgeSnapshotUpdater(
    storage,
    services.records,
    services.rulesets,
    platformNames(config),
  );
  services.zones.onChange((id, zone) => snapshotUpdater.setZone(id, zone));
  await services.zones.load();
  await snapshotUpdater.load();
  const origins = new Origins(settings, policy);
  const { relaySecret } = config;
  const relays = new Relays(config.relays.map(parseRelay), relaySecret ?? "", settings);
  const geo = await openGeo(config, logger);
  const ports: Record<"http" | "https", number | undefined> = { http: undefined, https: undefined };
  let tls: TlsListener | undefined;
  const lookUp = systemLookUp();
  const ownHosts = new OwnHosts(snapshotUpdater.snapshot, config.workersDomain);
  services.outbound.serve(ownHosts);
  const { snippets, cells, subrequests, outbound, runtime, scriptRouter, viaHeader } = services;
  const snippetLimits = {
    cpuMs: config.snippetCpuMs,
    memoryBytes: config.snippetMemoryMegabytes * 1024 * 1024,
    bodyBytesMax: settings.bodyBytesMax,
    treeSubRequests: runtime.treeSubRequests,
  };
  // With trusted proxies, the address of a connection does not identify the visitor.
  const isAuthor =
    config.errorDetails === "local" && config.trustedProxies.length === 0 ? isLocalVisitor : () => false;
  const scripts = scriptHandlers(scriptRouter, runtime, logger, isAuthor);
  const smartRouting = new SmartRouting(origins, relays, services.smartRouting, logger);
  services.zones.onChange((id, zone) => {
    if (zone === undefined) smartRouting.forget(id);
  });
  const probes = new Probes(relays, () => smartRouting.setAside(), logger);
  const edge = new Edge({
    settings,
    requestCf: new RequestCf({
      colo: config.colo,
      geo,
      proxies: new TrustedProxies(config.trustedProxies),
      score: (zoneId, request, path) => services.botManagement.score(zoneId, request, path),
    }),
    viaHeader,
    origins,
    sslMode: (zoneId) => services.zoneSettings.value(zoneId, "ssl"),
    routing: smartRouting,
    observe: services.metrics?.edge,
    handlers: [
      ...(relaySecret === undefined ? [] : [relayHandler(relaySecret, origins, settings.bodyBytesMax)]),
      ...(config.acmeDirectory === undefined ? [] : [await answerChallenges(storage, services.zones)]),
      ...(config.edgeTlsListen === undefined ? [] : [schemeHandler(services.zoneSettings, () => ports)]),
      services.images.delivery.handler,
      services.images.transformations.handler,
      snippetHandler({
        snippets,
        cells,
        subrequests,
        outbound,
        transformations: services.images.transformations,
        limits: snippetLimits,
        isAuthor,
        logger,
      }),
      scripts.handler,
    ],
    upgradeHandlers: [scripts.upgradeHandler],
    snapshot: snapshotUpdater.snapshot,
    policy,
    lookUp,
    logger,
  });
  return {
    async listen(at) {
      const address = await edge.listen(at);
      probes.start();
      ports.http = address.port;
      ownHosts.listens("http", address);
      policy.forbidSockets(address.port);
      return address;
    },
    async listenTls(at, authorityDir) {
      const { startTls } = await import("./edge/tls/start.ts");
      tls = await startTls({
        config,
        services,
        storage,
        edge,
        settings,
        snapshot: snapshotUpdater.snapshot,
        logger,
        authorityDir,
      });
      const address = await tls.listen(at);
      ports.https = address.port;
      ownHosts.listens("https", address);
      policy.forbidSockets(address.port);
      return address;
    },
    forbid: (address) => policy.forbidListener(address.port),
    async reload() {
      tls?.reload();
      await geo.reload();
    },
    announceEnd() {
      edge.announceEnd();
      tls?.announceEnd();
    },
    async close(deadlineMs) {
      probes.stop();
      await Promise.all([edge.close(deadlineMs), tls?.close(deadlineMs)]);
      await relays.close();
      geo.close();
    },
  };
}

/** Host names of the installation itself: the domain of scripts without a zone, and the host of image delivery. */
export function platformNames({ workersDomain, deliveryUrl }: Config): string[] {
  const delivery = deliveryUrl === undefined ? [] : [new URL(deliveryUrl).hostname];
  return [workersDomain.toLowerCase(), ...delivery];
}

async function answerChallenges(storage: Storage, zones: Services["zones"]): Promise<EdgeHandler> {
  const { challengeHandler, Challenges } = await import("./edge/tls/acme/challenges.ts");
  return challengeHandler(new Challenges(storage), (zoneId) => zones.find(zoneId)?.accountId);
}

/** The limits of the edge: the defaults, and the configured values. */
export const edgeSettings = async ({
  colo,
  originSourceAddress,
  originCa,
  ruleBodyKilobytes,
}: Config): Promise<EdgeSettings> => ({
  ...edgeDefaults,
  colo,
  ruleBodyBytesMax: ruleBodyKilobytes * 1024,
  originSourceAddress,
  originCa: originCa.length === 0 ? undefined : await trusted(originCa),
});

/** Opens the configured geo databases. The reader is imported only if one is configured. */
async function openGeo({ geoCity, geoAsn }: Config, logger: Logger): Promise<GeoSource> {
  if (geoCity === undefined && geoAsn === undefined) return noGeo;
  const { GeoDatabase } = await import("./edge/client-info/geo.ts");
  const warn = (error: Error): void => logger.warn({ err: error }, "the addresses known before stay in use");
  return GeoDatabase.open({ city: geoCity, asn: geoAsn }, warn);
}

/** Node's trusted authorities and those in the files, in PEM. */
async function trusted(files: readonly string[]): Promise<string[]> {
  const [{ rootCertificates }, { readFileSync }] = await Promise.all([import("node:tls"), import("node:fs")]);
  return [...rootCertificates, ...files.map((file) => readFileSync(file, "utf8"))];
}

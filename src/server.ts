import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Logger } from "pino";
import { Accounts } from "./control/accounts/accounts.ts";
import { Members } from "./control/accounts/members.ts";
import { ensureOwner, ensurePepper } from "./control/accounts/owner.ts";
import { AssetServer } from "./workers/assets/asset-server.ts";
import { assetsBinding } from "./workers/assets/binding.ts";
import { Assets } from "./workers/assets/assets.ts";
import { AssetCollector } from "./workers/assets/collector.ts";
import { createApi, type ApiOptions } from "./control/api/app.ts";
import { announceEnd, createApiServer, drain, listen } from "./control/api/listener.ts";
import { during } from "./platform/listen/during.ts";
import { reserve, type Reserved } from "./platform/listen/reserve.ts";
import { isLoopback } from "./platform/config/config.ts";
import type { Config } from "./platform/config/settings.ts";
import { dashboardPath, serveDashboard } from "./platform/dashboard/pages.ts";
import { DnsRecords } from "./dns/records/records.ts";
import { operations } from "./operations.ts";
import { AddressPolicy } from "./edge/origin/address-policy.ts";
import { edgeAddressesOf } from "./edge/configuration/edge-addresses.ts";
import { edgeSettings, platformNames, startEdge } from "./edge-service.ts";
import { ViaHeader } from "./edge/request/via.ts";
import { imagesBinding } from "./products/images/binding.ts";
import { deliveryPrefix } from "./products/images/delivery/delivery.ts";
import { answerScriptFetch } from "./products/images/transformations/script-fetch.ts";
import { accountHash, ImagesService } from "./products/images/index.ts";
import { DnsSettingsOfZones } from "./dns/settings/dns-settings.ts";
import { Dnssec } from "./dns/dnssec/dnssec.ts";
import { OutgoingTransfers } from "./dns/transfers/outgoing.ts";
import { startNameServer } from "./dns/name-server/index.ts";
import { kvBinding } from "./products/kv/binding.ts";
import { queueBinding } from "./products/queues/binding.ts";
import { BotManagementSetting } from "./edge/client-info/bot-management.ts";
import { Rulesets } from "./control/rulesets/rulesets.ts";
import type { BindingHandlers } from "./workers/runtime/runtime-options.ts";
import { createRuntimeServices } from "./runtime-service.ts";
import { createScriptServices } from "./script-service.ts";
import type { Services } from "./services.ts";
import { Analytics } from "./edge/smart-routing/analytics.ts";
import { Certificates } from "./edge/tls/certificates/certificates.ts";
import { CertificatePacks } from "./edge/tls/certificates/packs.ts";
import { listDnsChallenges } from "./edge/tls/acme/store.ts";
import { authorityFiles } from "./edge/tls/certificates/local-authority.ts";
import { ZoneSettings } from "./control/zone-settings/zone-settings.ts";
import { startBackups } from "./backup-service.ts";
import { createBlobs } from "./blob-service.ts";
import { closeDataFolder, writeForOthers } from "./platform/storage/private-files.ts";
import { Snippets } from "./products/snippets/snippets.ts";
import { tailUpgrade } from "./workers/tail/listener.ts";
import { createTriggerServices, type TriggerServices } from "./trigger-service.ts";
import { openStorage } from "./platform/storage/storage.ts";
import { hashSecret } from "./control/tokens/secret.ts";
import { Tokens } from "./control/tokens/tokens.ts";
import { dnsActivation, dnsProof, staticActivation } from "./control/zones/activation.ts";
import { workflowBinding } from "./products/workflows/binding.ts";
import { createWorkflows } from "./products/workflows/index.ts";
import { workflowCode } from "./products/workflows/cells/code.ts";
import { verificationKeyOf, Zones } from "./control/zones/zones.ts";
import { NodeHealth } from "./platform/observability/health.ts";
import { createHealthServer } from "./platform/observability/health-listener.ts";
import { listenAt } from "./platform/listen/listen.ts";
import { unawaited } from "./platform/util/uncaught.ts";

/** The addresses of all listeners: the content of the ready file. */
export interface Ready {
  api: string;
  edge: string;
  /** Null if the edge does not listen for TLS. `tls_authority` is the path of a PEM file, for clients to trust. */
  edge_tls: string | null;
  tls_authority: string | null;
  /** Host and port, for UDP and TCP. */
  dns: string;
  /** Null without `metrics-listen`. */
  metrics: string | null;
  delivery: string;
  dashboard: string;
  account_id: string;
  account_hash: string;
  pid: number;
  /** Start of the process, in RFC 3339. */
  started: string;
}

export interface RunningServer {
  ready: Ready;
  services: Services;
  /** The owner's API token, if this start created it. */
  newToken: string | undefined;
  /** Reads files of the configuration again: certificates and geo databases. */
  reload(): Promise<void>;
  /**
   * Lame duck: `/readyz` is 503 and clients are asked to open their next connections elsewhere. Everything is
   * still served.
   */
  announceEnd(): void;
  close(deadlineMs: number): Promise<void>;
}

const watchIntervalMs = 500;
const activationTickMs = 1000;
const hourMs = 3_600_000;
const mebibyte = 1024 * 1024;

/** Starts the platform: storage, services and listeners, in that order. Releases `reserved` at the end. */
export async function startServer(
  config: Config,
  logger: Logger,
  {
    reserved,
    ...options
  }: Pick<ApiOptions, "validateResults" | "onAnswer"> & { reserved?: Reserved | undefined } = {},
): Promise<RunningServer> {
  await using stack = new AsyncDisposableStack();
  const { sockets } = stack.use(reserved ?? (await reserve(config)));
  const health = new NodeHealth(logger);
  if (config.healthListen !== undefined) {
    const healthServer = createHealthServer(health);
    await listenAt(healthServer, sockets.take("healthListen"));
    stack.defer(() => drain(healthServer, 0));
  }
  const { edgeTlsListen } = config;
  const listens = [config.apiListen, config.edgeListen, config.dnsListen, edgeTlsListen ?? config.edgeListen];
  const onLoopback = listens.every(isLoopback);
  const storage = await during(
    "open the database",
    openStorage(databaseUrl(config), config.databaseTimeoutSeconds * 1000),
  );
  // Files of an ephemeral start are deleted with the process.
  const folder = config.ephemeral ? mkdtempSync(join(tmpdir(), "selvedge-")) : config.dataDir;
  if (config.ephemeral) process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  if (!config.ephemeral) {
    unawaited(
      closeDataFolder(folder, logger).catch((error: unknown) =>
        logger.warn({ err: error }, "files in the data folder could not be closed to other users"),
      ),
    );
  }
  const { blobs, blobCounts, closeBlobs } = await createBlobs(config, storage, folder, logger);
  const activation = config.activation ?? (onLoopback ? "static" : "dns");
  const accounts = new Accounts(storage);
  const pepper = await ensurePepper(storage);
  const zones = new Zones(storage, {
    nameServers: config.nameServers,
    defaultPlan: config.defaultPlan,
    activation:
      activation === "static"
        ? staticActivation
        : dnsActivation(config.resolvers, config.activationIntervalSeconds),
    platformNames: platformNames(config),
    ownership: {
      keyOf: (accountId, name) => verificationKeyOf(hashSecret(`zone ${accountId} ${name}`, pepper)),
      isShown: dnsProof(config.resolvers),
    },
  });
  const tokens = new Tokens(storage, accounts, pepper, zones);
  const records = new DnsRecords(storage);
  records.changes.onChange(async ({ zoneId, names }) => zones.reviewDelegations(zoneId, names.keys()));
  const rulesets = new Rulesets(storage);
  const parentsFollow = activation === "static";
  const transfers = new OutgoingTransfers(storage);
  const dnssec = new Dnssec(storage, parentsFollow ? 0 : config.activationIntervalSeconds);
  const dnsSettings = new DnsSettingsOfZones(storage);
  const snippets = new Snippets(storage, rulesets);
  const botManagement = new BotManagementSetting(storage);
  zones.onChange((id, zone) => {
    if (zone !== undefined) return;
    snippets.forget(id);
    botManagement.forget(id);
  });
  const smartRouting = new Analytics();
  const certificates = new Certificates(storage);
  const certificatePacks = new CertificatePacks(storage, certificates, config.acmeDirectory !== undefined);
  const zoneSettings = new ZoneSettings(storage, config.defaultSsl ?? (onLoopback ? "flexible" : "full"));
  zones.onChange((id, zone) => {
    if (zone !== undefined) return;
    smartRouting.remove(id);
    zoneSettings.forget(id);
  });
  const assets = new Assets(storage, blobs, tokens.hash("asset upload tokens"));
  const assetCollector = new AssetCollector(storage, blobs, {
    retentionMs: config.assetRetentionHours * hourMs,
  });
  const assetServer = new AssetServer(assets, blobs, {
    cacheBytes: config.assetCacheMegabytes * mebibyte,
  });
  const scriptServices = createScriptServices(
    config,
    storage,
    { accounts, tokens, zones, records, blobs, assets },
    async (accountId, name) => triggers.queues.findByName(accountId, name) !== undefined,
    async (script) => runtimeServices.startup.start(script),
  );
  const policy = new AddressPolicy(config.privateNetworks ?? (onLoopback ? "origins" : "deny"));
  const images = new ImagesService({
    storage,
    accounts,
    blobs,
    policy,
    logger,
    cacheFolder: join(folder, "cache"),
    memoryBytesMax: config.imageMemoryMegabytes * mebibyte,
    diskBytesMax: config.imageDiskMegabytes * mebibyte,
    intermediateCopySidePixels: config.imageMezzaninePixels,
    deliveryUrl: config.deliveryUrl,
    moreFormats: { avif: config.imageAcceptAvif, svg: config.imageAcceptSvg },
    transformationSettings: (zoneId) => ({
      mode: zoneSettings.value(zoneId, "transformations"),
      allowedOrigins: zoneSettings.value(zoneId, "transformations_allowed_origins"),
    }),
    send: async (...request) => runtimeServices.outbound.fetch(...request),
    engine: { slots: config.imageSlots, faceDetector: config.imageFaceDetector },
  });
  const settings = await edgeSettings(config);
  const handlers = (): BindingHandlers => ({
    kv_namespace: kvBinding(scriptServices.kv),
    assets: assetsBinding(assetServer, async (id) => scriptServices.versions.assetsOf(id)),
    images: imagesBinding(images),
    queue: queueBinding(triggers.queues, triggers.queueMessages),
    workflow: workflowBinding(workflowServices.workflows, workflowServices.workflowInstances),
  });
  const runtimeServices = createRuntimeServices(
    config,
    {
      ...scriptServices,
      assetServer,
      answerImageFetch: async (...fetched) => answerScriptFetch(images.transformations, ...fetched),
    },
    handlers,
    settings,
    policy,
    new ViaHeader(tokens.hash("hops of scripts' requests")),
    logger,
  );
  const triggers: TriggerServices = createTriggerServices(storage, scriptServices, runtimeServices, logger);
  const workflowServices = createWorkflows(config, storage, scriptServices, logger);
  const { metricsListen } = config;
  const metrics =
    metricsListen === undefined
      ? undefined
      : (await import("./metrics.ts")).createMetrics({
          ...runtimeServices,
          smartRouting,
          zones,
          certificates,
          certificatePacks,
          blobCounts,
        });
  const services: Services = {
    ...scriptServices,
    ...workflowServices,
    ...runtimeServices,
    ...triggers,
    accounts,
    members: new Members(storage, accounts, tokens),
    tokens,
    zones,
    records,
    dnssec,
    transfers,
    dnsSettings,
    rulesets,
    snippets,
    botManagement,
    blobs,
    assets,
    assetServer,
    images,
    smartRouting,
    certificates,
    certificatePacks,
    zoneSettings,
    edgeAddresses: edgeAddressesOf(config),
    metrics,
    logger,
  };

  await storage.watch(watchIntervalMs);
  await accounts.load();
  await Promise.all([dnssec.load(), dnsSettings.load(), transfers.load()]);
  await zoneSettings.load();
  await snippets.load();
  await botManagement.load();
  const edge = await startEdge(config, services, storage, logger, policy, settings);
  await services.startScripts(logger);
  await services.startTriggers();
  await services.startWorkflows(workflowCode(services.scripts, services.runtime));
  const owner = await ensureOwner(config, storage, accounts, tokens);

  const app = createApi({
    services,
    operations,
    logger,
    rateLimit: config.apiRateLimit,
    rateWindowSeconds: config.apiRateWindowSeconds,
    bodyBytesMax: config.apiBodyBytesMax,
    ...options,
  });
  health.add("database", () => storage.check());
  health.add("disk", () => blobs.check());
  const apiServer = createApiServer(app, health, metrics?.api, serveDashboard);
  apiServer.on("upgrade", tailUpgrade(services.tails, logger));
  const apiAddress = await listen(apiServer, sockets.take("apiListen"));
  edge.forbid(apiAddress);
  const metricsServer = metrics?.createServer();
  const metricsAddress =
    metricsListen === undefined || metricsServer === undefined
      ? undefined
      : await listen(metricsServer, sockets.take("metricsListen"));
  if (metricsAddress !== undefined) edge.forbid(metricsAddress);
  const edgeAddress = await edge.listen(sockets.take("edgeListen"));
  services.scriptRouter.listening(edgeAddress.port);
  images.listensAt(`http://${show(edgeAddress)}${deliveryPrefix}`);
  // An ephemeral start uses the local authority of the data folder, if there is one, because users may trust it.
  const authorityDir = existsSync(authorityFiles(config.dataDir).certificate) ? config.dataDir : folder;
  const tlsAddress =
    edgeTlsListen === undefined
      ? undefined
      : await edge.listenTls(sockets.take("edgeTlsListen"), authorityDir);
  const cookieSecret = Buffer.from(tokens.hash("dns cookies"), "hex").subarray(0, 16);
  const nameServer = await startNameServer(config, services, storage, logger, {
    cookieSecret,
    parentsFollow,
    listChallenges: async (zoneId) => listDnsChallenges(storage.read, zoneId),
  });
  if (metrics !== undefined)
    metrics.register(
      (await import("./dns/name-server/metrics.ts")).nameServerMetrics(() => nameServer.answerCounts()),
    );
  const dnsAddress = await nameServer.listen(sockets.dns);
  edge.forbid(dnsAddress);

  const acme =
    config.acmeDirectory === undefined
      ? undefined
      : (await import("./edge/tls/acme/start.ts")).startAcme(
          config.acmeDirectory,
          config,
          services,
          storage,
          logger,
        );
  await services.runTriggers();
  const stopCollecting = assetCollector.start(logger);
  const backups = await startBackups(config, logger, metrics);
  const timer = setInterval(() => {
    unawaited(
      zones
        .checkPending()
        .catch((error: unknown) => logger.warn({ err: error }, "checking pending zones failed")),
    );
  }, activationTickMs);
  timer.unref();

  const ready: Ready = {
    api: `http://${show(apiAddress)}/client/v4`,
    edge: `http://${show(edgeAddress)}`,
    edge_tls: tlsAddress === undefined ? null : `https://${show(tlsAddress)}`,
    tls_authority: tlsAddress === undefined ? null : resolve(authorityFiles(authorityDir).certificate),
    dns: show(dnsAddress),
    metrics: metricsAddress === undefined ? null : `http://${show(metricsAddress)}/metrics`,
    delivery: images.deliveryUrl,
    dashboard: `http://${show(apiAddress)}${dashboardPath}`,
    account_id: owner.account.id,
    account_hash: accountHash(owner.account.id),
    pid: process.pid,
    started: new Date(performance.timeOrigin).toISOString(),
  };
  health.phase = "serving";
  if (config.readyFile !== undefined) writeForOthers(config.readyFile, `${JSON.stringify(ready, null, 2)}\n`);
  const started = stack.move();
  logger.info({ api: ready.api, edge: ready.edge, dns: ready.dns }, "ready");
  return {
    ready,
    services,
    newToken: owner.newToken,
    reload: () => edge.reload(),
    announceEnd() {
      health.phase = "stopping";
      announceEnd(apiServer);
      edge.announceEnd();
    },
    async close(deadlineMs) {
      health.phase = "stopping";
      clearInterval(timer);
      await acme?.close();
      if (metricsServer !== undefined) await drain(metricsServer, 0);
      await services.stopTriggers(deadlineMs);
      await services.stopScripts();
      await stopCollecting();
      await backups?.stop();
      await Promise.all([drain(apiServer, deadlineMs), edge.close(deadlineMs), nameServer.close()]);
      await workflowServices.closeWorkflows();
      await runtimeServices.closeRuntime();
      await images.close();
      await closeBlobs();
      await storage.close();
      await started.disposeAsync();
      if (config.ephemeral) rmSync(folder, { recursive: true, force: true });
    },
  };
}

export const databaseUrl = (config: Config): string =>
  config.databaseUrl ??
  (config.ephemeral ? "sqlite::memory:" : `sqlite:${join(config.dataDir, "selvedge.db")}`);

const show = ({ address, port }: { address: string; port: number }): string =>
  address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;

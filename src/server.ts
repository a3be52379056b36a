import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { isIP } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Logger } from "pino";
import { Accounts } from "./accounts/accounts.ts";
import { ensureOwner, ensurePepper } from "./accounts/owner.ts";
import { AssetServer } from "./assets/asset-server.ts";
import { assetsBinding } from "./assets/binding.ts";
import { Assets } from "./assets/assets.ts";
import { AssetCollector } from "./assets/collector.ts";
import { createApi } from "./api/app.ts";
import { createApiServer, drain, listen } from "./api/listener.ts";
import { parseAddress } from "./config/config.ts";
import type { Config } from "./config/settings.ts";
import { dashboardPath, serveDashboard } from "./dashboard/pages.ts";
import { DnsRecords } from "./dns/records.ts";
import { operations } from "./operations.ts";
import { AddressPolicy } from "./edge/address-policy.ts";
import { edgeSettings, startEdge } from "./edge-service.ts";
import { imagesBinding } from "./images/binding.ts";
import { deliveryPrefix } from "./images/delivery.ts";
import { accountHash, ImagesService } from "./images/index.ts";
import { DnsSettingsOfZones } from "./name-server/dns-settings.ts";
import { Dnssec } from "./name-server/dnssec.ts";
import { OutgoingTransfers } from "./name-server/transfers/outgoing.ts";
import { startNameServer } from "./name-server/index.ts";
import { kvBinding } from "./kv/binding.ts";
import { queueBinding } from "./queues/binding.ts";
import { BotManagementSetting } from "./request-cf/bot-management.ts";
import { Rulesets } from "./rulesets/rulesets.ts";
import type { BindingHandlers } from "./runtime/runtime.ts";
import { createRuntimeServices } from "./runtime-service.ts";
import { createScriptServices } from "./script-service.ts";
import type { Services } from "./services.ts";
import { Analytics } from "./smart-routing/analytics.ts";
import { Certificates } from "./tls/certificates.ts";
import { CertificatePacks } from "./tls/packs.ts";
import { authorityFiles } from "./tls/local-authority.ts";
import { ZoneSettings } from "./tls/zone-settings.ts";
import { FileBlobs } from "./storage/blobs.ts";
import { Snippets } from "./snippets/snippets.ts";
import { tailUpgrade } from "./tail/listener.ts";
import { createTriggerServices, type TriggerServices } from "./trigger-service.ts";
import { openStorage } from "./storage/storage.ts";
import { Tokens } from "./tokens/tokens.ts";
import { dnsActivation, staticActivation } from "./zones/activation.ts";
import { workflowBinding } from "./workflows/binding.ts";
import { createWorkflows } from "./workflows/index.ts";
import { workflowCode } from "./workflows/code.ts";
import { Zones } from "./zones/zones.ts";

/** Where everything listens: the content of the ready file. */
export interface Ready {
  api: string;
  edge: string;
  /** Null where the edge does not listen for TLS; the authority is a file, in PEM, for those who are to trust it. */
  edge_tls: string | null;
  tls_authority: string | null;
  /** Host and port, for UDP and TCP. */
  dns: string;
  /** Null where nobody asks for metrics. */
  metrics: string | null;
  delivery: string;
  dashboard: string;
  account_id: string;
  account_hash: string;
  pid: number;
}

export interface RunningServer {
  ready: Ready;
  services: Services;
  /** The owner's API token, when this start made it. */
  newToken: string | undefined;
  close(deadlineMs: number): Promise<void>;
}

const watchIntervalMs = 500;
const activationTickMs = 1000;
const hourMs = 3_600_000;
const mebibyte = 1024 * 1024;

/** Puts the platform together: storage, services, listeners, in that order. */
export async function startServer(
  config: Config,
  logger: Logger,
  options: { validateResults?: boolean } = {},
): Promise<RunningServer> {
  const { edgeTlsListen } = config;
  const listens = [config.apiListen, config.edgeListen, config.dnsListen, edgeTlsListen ?? config.edgeListen];
  const onLoopback = listens.every(isLoopback);
  const storage = await openStorage(databaseUrl(config));
  // What lies in files is as ephemeral as the rest, and goes with the process.
  const folder = config.ephemeral ? mkdtempSync(join(tmpdir(), "selvedge-")) : config.dataDir;
  if (config.ephemeral) process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const blobs = new FileBlobs(join(folder, "blobs"));
  const activation = config.activation ?? (onLoopback ? "static" : "dns");
  const accounts = new Accounts(storage);
  const zones = new Zones(storage, {
    nameServers: config.nameServers,
    defaultPlan: config.defaultPlan,
    activation:
      activation === "static"
        ? staticActivation
        : dnsActivation(config.resolvers, config.activationIntervalSeconds),
  });
  const tokens = new Tokens(storage, accounts, await ensurePepper(storage));
  const records = new DnsRecords(storage);
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
    mezzanineSidePixels: config.imageMezzaninePixels,
    deliveryUrl: config.deliveryUrl,
    moreFormats: { avif: config.imageAcceptAvif, svg: config.imageAcceptSvg },
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
    { ...scriptServices, assetServer },
    handlers,
    settings,
    policy,
    logger,
  );
  const triggers: TriggerServices = createTriggerServices(storage, scriptServices, runtimeServices, logger);
  const workflowServices = createWorkflows(config, storage, scriptServices, logger);
  const { metricsListen } = config;
  const metrics =
    metricsListen === undefined
      ? undefined
      : new (await import("./observability/metrics.ts")).Metrics({
          smartRouting,
          zoneName: (id) => zones.find(id)?.name,
          cells: () => runtimeServices.cellCounts(),
          certificates,
          certificatePacks,
        });
  const services: Services = {
    ...scriptServices,
    ...workflowServices,
    ...runtimeServices,
    ...triggers,
    accounts,
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
  const owner = await ensureOwner(config, accounts, tokens);

  const app = createApi({
    services,
    operations,
    logger,
    rateLimit: config.apiRateLimit,
    rateWindowSeconds: config.apiRateWindowSeconds,
    bodyBytesMax: config.apiBodyBytesMax,
    ...options,
  });
  const faults = async (): Promise<string[]> =>
    storage.read
      .selectFrom("meta")
      .select("key")
      .limit(1)
      .execute()
      .then(
        () => [],
        () => ["database"],
      );
  const apiServer = createApiServer(app, { faults }, metrics?.api, serveDashboard);
  apiServer.on("upgrade", tailUpgrade(services.tails, logger));
  const apiAddress = await listen(apiServer, ...hostAndPort(config.apiListen));
  edge.forbid(apiAddress);
  const metricsServer = metrics?.createServer();
  const metricsAddress =
    metricsListen === undefined || metricsServer === undefined
      ? undefined
      : await listen(metricsServer, ...hostAndPort(metricsListen));
  if (metricsAddress !== undefined) edge.forbid(metricsAddress);
  const edgeAddress = await edge.listen(...hostAndPort(config.edgeListen));
  services.scriptRouter.listening(edgeAddress.port);
  images.listensAt(`http://${show(edgeAddress)}${deliveryPrefix}`);
  // What an ephemeral start makes is forgotten; an authority that is kept, and perhaps trusted, is used by it too.
  const authorityDir = existsSync(authorityFiles(config.dataDir).certificate) ? config.dataDir : folder;
  const tlsAddress =
    edgeTlsListen === undefined
      ? undefined
      : await edge.listenTls(...hostAndPort(edgeTlsListen), authorityDir);
  const cookieSecret = Buffer.from(tokens.hash("dns cookies"), "hex").subarray(0, 16);
  const nameServer = await startNameServer(config, services, storage, logger, {
    cookieSecret,
    parentsFollow,
  });
  metrics?.addNameServer(() => nameServer.answerCounts());
  const dnsAddress = await nameServer.listen(...hostAndPort(config.dnsListen));
  edge.forbid(dnsAddress);

  const acme =
    config.acmeDirectory === undefined
      ? undefined
      : (await import("./tls/acme/start.ts")).startAcme(
          config.acmeDirectory,
          config,
          services,
          storage,
          logger,
        );
  await services.runTriggers();
  const stopCollecting = assetCollector.start(logger);
  const timer = setInterval(() => {
    zones
      .checkPending()
      .catch((error: unknown) => logger.warn({ err: error }, "checking pending zones failed"));
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
  };
  if (config.readyFile !== undefined)
    writeAtomically(config.readyFile, `${JSON.stringify(ready, null, 2)}\n`);
  logger.info({ api: ready.api, edge: ready.edge, dns: ready.dns }, "ready");
  return {
    ready,
    services,
    newToken: owner.newToken,
    async close(deadlineMs) {
      clearInterval(timer);
      await acme?.close();
      if (metricsServer !== undefined) await drain(metricsServer, 0);
      await services.stopTriggers(deadlineMs);
      await services.stopScripts();
      await stopCollecting();
      await Promise.all([drain(apiServer, deadlineMs), edge.close(deadlineMs), nameServer.close()]);
      await workflowServices.closeWorkflows();
      await runtimeServices.closeRuntime();
      await images.close();
      await storage.close();
      if (config.ephemeral) rmSync(folder, { recursive: true, force: true });
    },
  };
}

const databaseUrl = (config: Config): string =>
  config.databaseUrl ??
  (config.ephemeral ? "sqlite::memory:" : `sqlite:${join(config.dataDir, "selvedge.db")}`);

function isLoopback(address: string): boolean {
  const host = parseAddress(address)?.host ?? "";
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

function hostAndPort(address: string): [host: string, port: number] {
  const { host, port } = parseAddress(address)!; // checked when the configuration was read
  return [host, port];
}

const show = ({ address, port }: { address: string; port: number }): string =>
  address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;

function writeAtomically(path: string, content: string): void {
  const temporary = `${path}.${process.pid}.tmp`;
  writeFileSync(temporary, content);
  renameSync(temporary, path);
}

import { resolve } from "node:path";
import type { Logger } from "pino";
import { capabilities, type Services } from "./capabilities.ts";
import type { ApiChecks } from "./control/api/server/app.ts";
import { authorityFiles } from "./edge/tls/certificates/authority-files.ts";
import type { Config } from "./platform/config/settings.ts";
import type { Reserved } from "./platform/listen/reserve.ts";
import { dashboardPath } from "./platform/dashboard/bundle.ts";
import { writeForOthers, writePrivate } from "./platform/storage/private-files.ts";
import { accountHash } from "./products/images/image-services.ts";
import type { Platform } from "./capability.ts";
import type { OwnProcess } from "./platform/processes/own-process.ts";
import { controlOf } from "./test-api/capability.ts";
import { start } from "./start.ts";

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
  /** The control surface of tests and its secret; absent without `test-api`. */
  control?: { url: string; token: string };
}

/** A started platform. */
export interface RunningServer {
  ready: Ready;
  services: Services;
  /** The owner's API token, if this start created it. */
  newToken: string | undefined;
  /** A link that signs in at the console once, if this start created the token. */
  startLink: string | undefined;
  /** Reads files of the configuration again: certificates and geo databases. */
  reload(): Promise<void>;
  /**
   * Lame duck: `/readyz` is 503 and clients are asked to open their next connections elsewhere. Everything is
   * still served.
   */
  announceEnd(): void;
  /** Releases leases and claims if other nodes can take them over. */
  giveBack(): Promise<void>;
  close(deadlineMs: number): Promise<void>;
}

interface StartOptions {
  reserved?: Reserved | undefined;
  /** Default: a single process with all capabilities. */
  own?: OwnProcess;
  /** Fills the platform before it says that it is ready. The token is the owner's. */
  fill?: ((ready: Ready, token: string) => Promise<void>) | undefined;
}

/** Starts the platform: all capabilities, in the order of their needs. Releases `reserved` at the end. */
export async function startServer(
  config: Config,
  logger: Logger,
  { reserved, own = { role: "single" }, fill, ...apiChecks }: ApiChecks & StartOptions = {},
): Promise<RunningServer> {
  const platform: Platform = { config, logger, apiChecks, reserved, own };
  const { services, reload, announceEnd, giveBack, close } = await start(capabilities, platform);
  // The first start is over when visitors are served. Later ones leave that to the edge processes.
  if (own.role === "main" && own.supervised.serving === 0) await services.fleet!.serves(config.edgeProcesses);
  services.health.phase = "serving";
  services.dashboardOrigins.push(new URL(services.images.deliveryUrl).origin);
  const ready = readyOf(services, own.role === "main" ? own.supervised.supervisorPid : undefined);
  try {
    await fill?.(ready, config.apiToken ?? services.owner.current!.newToken!);
    const write = ready.control === undefined ? writeForOthers : writePrivate;
    if (config.readyFile !== undefined) write(config.readyFile, `${JSON.stringify(ready, null, 2)}\n`);
  } catch (error) {
    await close(0);
    throw error;
  }
  logger.info({ api: ready.api, edge: ready.edge, dns: ready.dns }, "ready");
  return {
    ready,
    services,
    newToken: services.owner.current!.newToken,
    startLink: await startLink(services, ready),
    reload,
    announceEnd() {
      services.health.phase = "stopping";
      announceEnd();
    },
    async giveBack() {
      if (services.nodeRegistry.live > 1) await giveBack();
    },
    async close(deadlineMs) {
      services.health.phase = "stopping";
      await close(deadlineMs);
    },
  };
}

async function startLink(services: Services, ready: Ready): Promise<string | undefined> {
  const { newToken } = services.owner.current!;
  if (newToken === undefined || services.dashboardPages === undefined) return undefined;
  const known = await services.tokens.authenticate(newToken, "127.0.0.1");
  return typeof known === "string"
    ? undefined
    : `${ready.dashboard}#start=${services.startCodes.make(known.token)}`;
}

function readyOf(services: Services, supervisorPid?: number): Ready {
  const { apiListener, edgeListener, edgeTlsListener, dnsListener, metricsListener, testControl } = services;
  const hasTls = edgeTlsListener.address !== undefined;
  const accountId = services.owner.current!.account.id;
  return {
    api: `http://${apiListener.authority}/client/v4`,
    edge: `http://${edgeListener.authority}`,
    edge_tls: hasTls ? `https://${edgeTlsListener.authority}` : null,
    tls_authority: hasTls ? resolve(authorityFiles(services.authorityDir).certificate) : null,
    dns: dnsListener.authority,
    metrics: metricsListener.address === undefined ? null : `http://${metricsListener.authority}/metrics`,
    delivery: services.images.deliveryUrl,
    dashboard: `http://${apiListener.authority}${dashboardPath}`,
    account_id: accountId,
    account_hash: accountHash(accountId),
    pid: supervisorPid ?? process.pid,
    started: new Date(performance.timeOrigin).toISOString(),
    ...(testControl === undefined ? {} : { control: controlOf(apiListener.authority, testControl.secret) }),
  };
}

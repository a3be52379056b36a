import type { Logger } from "pino";
import { capabilities, type Services } from "./capabilities.ts";
import type { ApiChecks } from "./control/api/server/app.ts";
import type { Config } from "./platform/config/settings.ts";
import type { Reserved } from "./platform/listen/reserve.ts";
import { writeForOthers, writePrivate } from "./platform/storage/private-files.ts";
import type { Platform } from "./capability.ts";
import type { OwnProcess } from "./platform/processes/own-process.ts";
import { readyOf, type Ready } from "./ready.ts";
import { start } from "./start.ts";

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
  fill?: ((ready: Ready, token: string) => Promise<Pick<Ready, "tokens" | "accounts">>) | undefined;
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
    Object.assign(ready, await fill?.(ready, config.apiToken ?? services.owner.current!.newToken!));
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

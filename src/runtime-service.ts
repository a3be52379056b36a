import { availableParallelism } from "node:os";
import type { Logger } from "pino";
import type { AssetServer } from "./workers/assets/asset-server.ts";
import { Admission } from "./sandbox/limits/admission.ts";
import { Cells } from "./sandbox/cells.ts";
import { admissionLimits, cellDefaults } from "./sandbox/settings.ts";
import type { Config } from "./platform/config/settings.ts";
import type { AddressPolicy } from "./edge/origin/address-policy.ts";
import { Origins } from "./edge/origin/origins.ts";
import { Outbound } from "./edge/origin/outbound.ts";
import { OutboundSockets } from "./edge/origin/outbound-sockets.ts";
import { systemLookUp } from "./edge/origin/resolve.ts";
import type { EdgeSettings } from "./edge/request/settings.ts";
import type { ViaHeader } from "./edge/request/via.ts";
import type { AnswerImageFetch, BindingHandlers } from "./workers/runtime/runtime-options.ts";
import { Runtime } from "./workers/runtime/runtime.ts";
import { SourceMaps } from "./workers/stack-traces/source-maps.ts";
import { Tails } from "./workers/tail/tails.ts";
import { Startup } from "./workers/runtime/startup.ts";
import type { ScriptServices } from "./script-service.ts";

/** The services that run code of accounts and of their customers. */
export interface RuntimeServices {
  runtime: Runtime;
  /** Live logs of runs. */
  tails: Tails;
  /** Cells for code of accounts, including snippets. Only the runtime uses the cells for customers' code. */
  cells: Cells;
  /** Admission of fetches and binding requests of scripts and snippets. */
  subrequests: Admission;
  outbound: Outbound;
  viaHeader: ViaHeader;
  startup: Startup;
  cellCounts(): Record<"accounts" | "customers", { shared: number; all: number }>;
  closeRuntime(): Promise<void>;
}

const mebibyte = 1024 * 1024;

/** Creates the services. Cells boot with the first request. `handlers` is called when the first binding is used. */
export function createRuntimeServices(
  config: Config,
  {
    scripts,
    namespaces,
    assetServer,
    answerImageFetch,
  }: ScriptServices & { assetServer: AssetServer; answerImageFetch: AnswerImageFetch },
  handlers: () => BindingHandlers,
  settings: EdgeSettings,
  policy: AddressPolicy,
  viaHeader: ViaHeader,
  logger: Logger,
): RuntimeServices {
  const cellSettings = {
    ...cellDefaults,
    shared: config.cells ?? availableParallelism(),
    cellBytesMax: config.cellMemoryMegabytes * mebibyte,
    inFlightMax: config.cellRequestsMax,
    socketsMax: config.cellSocketsMax,
    accountShare: config.accountSharePercent / 100,
    waitMs: config.requestWaitSeconds * 1000,
  };
  const cells = new Cells(cellSettings, logger);
  const customers = new Cells(cellSettings, logger);
  // Uploads of customers are started here once, so that slow startup code delays no requests.
  const uploads = new Cells({ ...cellSettings, shared: 1, spares: 0, scriptsMax: 10 }, logger);
  const origins = new Origins(settings, policy, "script");
  const lookUp = systemLookUp();
  const sockets = new OutboundSockets(new Origins(settings, policy, "socket"), lookUp, settings);
  const outbound = new Outbound(origins, lookUp, settings, viaHeader, sockets);
  const tails = new Tails();
  const sourceMaps = new SourceMaps(async (id) => scripts.sourceMaps(id));
  const subrequests = new Admission(admissionLimits(cellSettings, config.cellSubrequestsMax));
  const runtime = new Runtime({
    scripts,
    namespaces,
    cells: { own: cells, customers },
    subrequests,
    outbound,
    answerImageFetch,
    assets: assetServer,
    tails,
    sourceMaps,
    handlers,
    generation: () =>
      `${scripts.revision}.${namespaces.revision}.${tails.revision}.${customers.quarantineRevision}`,
    logger,
    limits: {
      cpuMs: config.scriptCpuMs,
      subRequests: config.scriptSubrequestsMax,
      treeSubRequests: Math.max(config.requestSubrequestsMax, config.scriptSubrequestsMax),
      treeRunningMax: config.requestScriptsMax,
      memoryBytes: config.scriptMemoryMegabytes * mebibyte,
      eventMs: config.scriptEventSeconds * 1000,
      bodyBytesMax: settings.bodyBytesMax,
      idleTimeoutMs: settings.idleTimeoutMs,
      cacheBytes: config.scriptCacheMegabytes * mebibyte,
    },
  });
  return {
    runtime,
    tails,
    cells,
    subrequests,
    outbound,
    viaHeader,
    startup: new Startup({ own: cells, customers: uploads }, config.scriptMemoryMegabytes * mebibyte),
    cellCounts: () => ({ accounts: cells.counts, customers: customers.counts }),
    async closeRuntime() {
      await Promise.all([cells.close(), customers.close(), uploads.close(), sourceMaps.close()]);
      await outbound.close();
    },
  };
}

import { availableParallelism } from "node:os";
import type { Logger } from "pino";
import type { AssetServer } from "./assets/asset-server.ts";
import { Cells } from "./cells/cells.ts";
import { cellDefaults } from "./cells/settings.ts";
import type { Config } from "./config/settings.ts";
import type { AddressPolicy } from "./edge/address-policy.ts";
import { Origins } from "./edge/origins.ts";
import { Outbound } from "./edge/outbound.ts";
import { systemLookUp } from "./edge/resolve.ts";
import type { EdgeSettings } from "./edge/settings.ts";
import { Runtime, type BindingHandlers } from "./runtime/runtime.ts";
import { Tails } from "./tail/tails.ts";
import { Startup } from "./runtime/startup.ts";
import type { ScriptServices } from "./script-service.ts";

/** What runs the code of accounts and of their customers. */
export interface RuntimeServices {
  runtime: Runtime;
  /** Who watches which of the runs. */
  tails: Tails;
  /** Cells of the accounts' own code, snippets included; those of customers are the runtime's alone. */
  cells: Cells;
  outbound: Outbound;
  startup: Startup;
  cellCounts(): Record<"accounts" | "customers", { shared: number; all: number }>;
  closeRuntime(): Promise<void>;
}

const mebibyte = 1024 * 1024;

/** Nothing is booted before the first request that needs it. `handlers` is asked when the first binding is used. */
export function createRuntimeServices(
  config: Config,
  { scripts, namespaces, assetServer }: ScriptServices & { assetServer: AssetServer },
  handlers: () => BindingHandlers,
  settings: EdgeSettings,
  policy: AddressPolicy,
  logger: Logger,
): RuntimeServices {
  const cellSettings = {
    ...cellDefaults,
    shared: config.cells ?? availableParallelism(),
    cellBytesMax: config.cellMemoryMegabytes * mebibyte,
  };
  const cells = new Cells(cellSettings, logger);
  const customers = new Cells(cellSettings, logger);
  // Where customers' uploads are tried: what they do at their start holds up nobody's requests.
  const uploads = new Cells({ ...cellSettings, shared: 1, spares: 0, scriptsMax: 10 }, logger);
  const origins = new Origins(settings, policy, "script");
  const outbound = new Outbound(origins, systemLookUp(), settings);
  const tails = new Tails();
  const runtime = new Runtime({
    scripts,
    namespaces,
    cells: { own: cells, customers },
    outbound,
    assets: assetServer,
    tails,
    handlers,
    generation: () =>
      `${scripts.revision}.${namespaces.revision}.${tails.revision}.${customers.suspectsRevision}`,
    logger,
    limits: {
      cpuMs: config.scriptCpuMs,
      subRequests: config.scriptSubrequestsMax,
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
    outbound,
    startup: new Startup({ own: cells, customers: uploads }, config.scriptMemoryMegabytes * mebibyte),
    cellCounts: () => ({ accounts: cells.counts, customers: customers.counts }),
    async closeRuntime() {
      await Promise.all([cells.close(), customers.close(), uploads.close()]);
      await origins.close();
    },
  };
}

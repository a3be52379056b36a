import { availableParallelism } from "node:os";
import { capability } from "../capability.ts";
import { mebibyte } from "../platform/bytes.ts";
import { processes } from "../platform/capability-processes.ts";
import { partOfNode } from "../platform/processes/part-of-node.ts";
import { Cells } from "./cells.ts";
import { SingleUseCells } from "./single-use.ts";
import { RpcTunnels } from "./gateway/rpc-tunnels.ts";
import { RemoteTunnelPool } from "./objects/remote-tunnels.ts";
import { RunAdmission } from "./limits/admission.ts";
import { sharedQuarantine } from "./limits/shared-quarantine.ts";
import { admissionLimits, cellDefaults, remoteTunnelsMax } from "./settings.ts";
import { TestedCells, type CellsUnderTest } from "./tested-cells.ts";
import { declaration } from "./declaration.ts";

/** Minimum number of dedicated cells of each process, so that one owner does not keep all others waiting. */
const dedicatedMin = 2;

/** The processes that run code of accounts and of their customers. They boot with the first request. */
export const sandbox = capability({
  name: "sandbox",
  processes: "all",
  declares: declaration,
  needs: [processes],
  create({ config, logger, own, messageBus }) {
    const settings = {
      ...cellDefaults,
      remoteTunnels: config.nodeListen === undefined ? 0 : remoteTunnelsMax,
      shared: partOfNode(config.cells ?? availableParallelism(), own, config),
      dedicatedMax: partOfNode(cellDefaults.dedicatedMax, own, config, dedicatedMin),
      cellBytesMax: config.cellMemoryMegabytes * mebibyte,
      inFlightMax: config.cellRequestsMax,
      socketsMax: config.cellSocketsMax,
      accountShare: config.accountSharePercent / 100,
      waitMs: config.requestWaitSeconds * 1000,
      mainChannel: own.role === "edge" ? own.channel : undefined,
    };
    const tunnels = new RpcTunnels(
      config.nodeListen !== undefined
        ? new RemoteTunnelPool(settings.objectCellsMax, settings.remoteTunnels)
        : undefined,
    );
    const cellsUnderTest: CellsUnderTest = { faultFor: undefined, all: [] };
    const { dedicatedRunsToTrust } = settings;
    const cellsOf = (kind: string): Cells => {
      if (config.testApi) return new TestedCells(cellsUnderTest, settings, logger, tunnels);
      return new Cells(settings, logger, tunnels, sharedQuarantine(kind, dedicatedRunsToTrust, messageBus));
    };
    return {
      /** Connections from all cells to the cells of Durable Objects. */
      tunnels,
      cellsUnderTest,
      /** Cells for code of accounts, including snippets. */
      cells: cellsOf("accounts"),
      customerCells: cellsOf("customers"),
      /** Uploads of customers are started here once, so that slow startup code delays no requests. */
      uploadCells: new Cells({ ...settings, shared: 1, spares: 0, scriptsMax: 10 }, logger),
      /** A cell for each run of code that is not deployed. */
      singleUseCells: new SingleUseCells(settings, logger, tunnels),
      /** Admission of fetches and binding requests of scripts and snippets. */
      subrequests: new RunAdmission(admissionLimits(settings, config.cellSubrequestsMax)),
    };
  },
  metrics: async ({ cells, customerCells }) =>
    (await import("./metrics.ts")).cellMetrics({ accounts: cells, customers: customerCells }),
  async close({ cells, customerCells, uploadCells, singleUseCells }) {
    const pools = [cells, customerCells, uploadCells, singleUseCells];
    await Promise.all(pools.map(async (pool) => pool.close()));
  },
});

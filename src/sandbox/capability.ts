import { availableParallelism } from "node:os";
import { capability } from "../capability.ts";
import { mebibyte } from "../platform/bytes.ts";
import { processes } from "../platform/capability-processes.ts";
import { partOfNode } from "../platform/processes/part-of-node.ts";
import { Cells } from "./cells.ts";
import { Doors } from "./gateway/doors.ts";
import { RemoteDoors } from "./objects/remote-doors.ts";
import { RunAdmission } from "./limits/admission.ts";
import { sharedQuarantine } from "./limits/shared-quarantine.ts";
import { admissionLimits, cellDefaults, remoteDoorsMax } from "./settings.ts";
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
  create({ config, logger, own, processNotes }) {
    const settings = {
      ...cellDefaults,
      remoteDoors: config.nodeListen === undefined ? 0 : remoteDoorsMax,
      shared: partOfNode(config.cells ?? availableParallelism(), own, config),
      dedicatedMax: partOfNode(cellDefaults.dedicatedMax, own, config, dedicatedMin),
      cellBytesMax: config.cellMemoryMegabytes * mebibyte,
      inFlightMax: config.cellRequestsMax,
      socketsMax: config.cellSocketsMax,
      accountShare: config.accountSharePercent / 100,
      waitMs: config.requestWaitSeconds * 1000,
    };
    const doors = new Doors(
      config.nodeListen !== undefined
        ? new RemoteDoors(settings.objectCellsMax, settings.remoteDoors)
        : undefined,
    );
    const cellsUnderTest: CellsUnderTest = { faultFor: undefined, all: [] };
    const { dedicatedRunsToTrust } = settings;
    const cellsOf = (kind: string): Cells => {
      if (config.testApi) return new TestedCells(cellsUnderTest, settings, logger, doors);
      return new Cells(settings, logger, doors, sharedQuarantine(kind, dedicatedRunsToTrust, processNotes));
    };
    return {
      /** Connections from all cells to the cells of Durable Objects. */
      doors,
      cellsUnderTest,
      /** Cells for code of accounts, including snippets. */
      cells: cellsOf("accounts"),
      customerCells: cellsOf("customers"),
      /** Uploads of customers are started here once, so that slow startup code delays no requests. */
      uploadCells: new Cells({ ...settings, shared: 1, spares: 0, scriptsMax: 10 }, logger),
      /** Admission of fetches and binding requests of scripts and snippets. */
      subrequests: new RunAdmission(admissionLimits(settings, config.cellSubrequestsMax)),
    };
  },
  metrics: async ({ cells, customerCells }) =>
    (await import("./metrics.ts")).cellMetrics({ accounts: cells, customers: customerCells }),
  async close({ cells, customerCells, uploadCells }) {
    await Promise.all([cells.close(), customerCells.close(), uploadCells.close()]);
  },
});

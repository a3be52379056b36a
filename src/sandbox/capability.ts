import { availableParallelism } from "node:os";
import { capability } from "../capability.ts";
import { mebibyte } from "../platform/bytes.ts";
import { Cells } from "./cells.ts";
import { Doors } from "./gateway/doors.ts";
import { RunAdmission } from "./limits/admission.ts";
import { admissionLimits, cellDefaults } from "./settings.ts";
import { TestedCells, type CellsUnderTest } from "./tested-cells.ts";
import { declaration } from "./declaration.ts";

/** The processes that run code of accounts and of their customers. They boot with the first request. */
export const sandbox = capability({
  name: "sandbox",
  declares: declaration,
  needs: [],
  create({ config, logger }) {
    const settings = {
      ...cellDefaults,
      shared: config.cells ?? availableParallelism(),
      cellBytesMax: config.cellMemoryMegabytes * mebibyte,
      inFlightMax: config.cellRequestsMax,
      socketsMax: config.cellSocketsMax,
      accountShare: config.accountSharePercent / 100,
      waitMs: config.requestWaitSeconds * 1000,
    };
    const doors = new Doors();
    const cellsUnderTest: CellsUnderTest = { meet: undefined, all: [] };
    const newCells = () =>
      config.testApi
        ? new TestedCells(cellsUnderTest, settings, logger, doors)
        : new Cells(settings, logger, doors);
    return {
      /** Lead from all cells to those of objects. */
      doors,
      cellsUnderTest,
      /** Cells for code of accounts, including snippets. */
      cells: newCells(),
      customerCells: newCells(),
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

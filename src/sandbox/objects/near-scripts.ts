import { LRUCache } from "lru-cache";
import { entriesMax } from "../../platform/util/loading-cache.ts";
import type { RunOptions } from "../cell.ts";
import type { CellRun } from "../gateway/cell-run.ts";
import type { NearCell } from "../near-cell.ts";
import type { CellScript } from "../process/script.ts";
import type { ObjectCellsOptions } from "./object-cells-options.ts";
import type { OpenCell } from "./open-cell.ts";
import type { Slots } from "./slots.ts";

/** Runs of a version elsewhere, out of quarantine, before it may run in the cell of its objects. */
const runsToTrust = 100;
/** Time for which a version stays away from its objects after a fault, and when its runs take too much CPU time. */
const faultAwayMs = 600_000;
const busyAwayMs = 60_000;
/** Concurrent runs of a cell. Further runs of scripts go to other cells, and so to other cores. */
const runsMax = 32;
/**
 * CPU time of a run, with its calls of objects, above which it keeps the objects of its cell waiting too long. A request
 * with 20 calls between objects takes 5 to 8 ms, which the objects need wherever the script runs.
 */
const cpuMsEach = 10;
/** CPU time above `cpuMsEach` that a version may use, before it has to stay away. Loading a script takes up to 100 ms. */
const cpuMsAllowance = 250;

interface VersionRecord {
  runs: number;
  /** CPU time that its last runs have used above `cpuMsEach`. */
  debtMs: number;
  awayUntil: number;
}

/**
 * Chooses the scripts that run in the cell of the objects that they call. Their calls then do not leave the process. A
 * script that exceeds a limit there takes the instances of these objects along, so a version has to earn its place, and
 * one fault loses it.
 */
export class NearScripts {
  readonly #slots: Pick<Slots, "hasRoomFor">;
  readonly #open: () => Iterable<OpenCell>;
  /** With a log all calls of objects pass the gateway, which notes each answer. */
  readonly #isOff: boolean;
  /** By the id of the version. */
  readonly #versions = new LRUCache<string, VersionRecord>(entriesMax(10_000));

  constructor(
    { log, ownership }: Pick<ObjectCellsOptions, "log" | "ownership">,
    slots: Pick<Slots, "hasRoomFor">,
    open: () => Iterable<OpenCell>,
  ) {
    this.#slots = slots;
    this.#open = open;
    this.#isOff = log !== undefined || ownership !== undefined;
  }

  /**
   * The cell of a namespace, if a script may run there. `calls` is RunMetadata.calls. Each question counts as one run of the
   * script.
   */
  cellFor(namespace: string, script: CellScript, calls: string): NearCell | undefined {
    // A cell in which scripts run is not idle: it must not keep others from having one.
    if (this.#isOff || !this.#mayRun(script) || !this.#slots.hasRoomFor(script.accountId)) return undefined;
    for (const open of this.#open()) {
      if (!open.namespaces.has(namespace)) continue;
      const { cell, isAlone } = open;
      return isAlone || cell.isDead || cell.runs.size >= runsMax ? undefined : this.#near(open, calls);
    }
    return undefined;
  }

  /** Runs that may have caused a fault of a cell of objects. */
  noteFaults(runs: readonly CellRun[]): void {
    for (const { script } of runs) this.#sendAway(script.id, faultAwayMs);
  }

  #near(open: OpenCell, calls: string): NearCell {
    return {
      cell: open.cell,
      prepared(options: RunOptions) {
        const { request } = options;
        return { ...options, request: { ...request, metadata: { ...request.metadata, calls } } };
      },
      ran: ({ script, cpuShareMs }: CellRun) => {
        open.noteScript();
        const record = this.#versions.peek(script.id);
        if (record === undefined) return;
        record.debtMs = Math.max(0, record.debtMs + cpuShareMs - cpuMsEach);
        if (record.debtMs > cpuMsAllowance || cpuShareMs > script.cpuMs)
          this.#sendAway(script.id, busyAwayMs);
      },
    };
  }

  #mayRun({ id }: CellScript): boolean {
    const record = this.#versions.get(id);
    if (record === undefined) {
      this.#versions.set(id, { runs: 1, debtMs: 0, awayUntil: 0 });
      return false;
    }
    if (record.runs < runsToTrust) {
      record.runs++;
      return false;
    }
    return performance.now() >= record.awayUntil;
  }

  #sendAway(id: string, ms: number): void {
    this.#versions.set(id, { runs: 0, debtMs: 0, awayUntil: performance.now() + ms });
  }
}

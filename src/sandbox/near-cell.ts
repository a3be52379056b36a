import type { Cell, RunOptions } from "./cell.ts";
import type { CellRun } from "./gateway/cell-run.ts";

/** A cell of objects in which a script that calls them may run now (objects/near-scripts.ts). */
export interface NearCell {
  readonly cell: Cell;
  /** The request with the calls that its run may make in the cell. */
  prepared(options: RunOptions): RunOptions;
  /** Records a run that has ended. */
  ran(cellRun: CellRun): void;
}

import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { Cells } from "./cells.ts";
import type { Cell, RunOptions } from "./cell.ts";
import { CellError, faultMessages } from "./errors.ts";
import type { Doors } from "./gateway/doors.ts";
import type { CellScript } from "./process/script.ts";
import type { CellSettings } from "./settings.ts";

/** A fault to inject into a run: its cell is killed, it exceeds its CPU time or memory, or its cell starts slowly. */
export type CellTrouble = "crash" | "cpu" | "memory" | { startMs: number };

/** The test kit's hook: `faultFor` returns the fault to inject into a run. */
export interface CellsUnderTest {
  faultFor: ((script: Pick<CellScript, "owner" | "accountId">) => CellTrouble | undefined) | undefined;
  readonly all: TestedCells[];
}

/** Cells into whose runs the test kit can inject faults. Without the test API, `Cells` is used instead. */
export class TestedCells extends Cells {
  readonly #underTest: CellsUnderTest;

  constructor(underTest: CellsUnderTest, settings: CellSettings, logger: Logger, doors?: Doors) {
    super(settings, logger, doors);
    this.#underTest = underTest;
    underTest.all.push(this);
  }

  override async run(next: () => RunOptions): Promise<void> {
    const trouble = this.#underTest.faultFor?.(next().script);
    if (trouble === "cpu" || trouble === "memory") throw new CellError(trouble, faultMessages[trouble]);
    if (typeof trouble === "object") await delay(trouble.startMs);
    await super.run(trouble === "crash" ? this.#crashing(next) : next);
  }

  /** Kills the cells that run, or have just run, scripts of these owners. Returns their number. */
  kill(isHit: (owner: string) => boolean): number {
    const hit = [...this.cells.values()].filter((cell) => hasRunOf(cell, isHit));
    for (const cell of hit) cell.process.kill("SIGKILL");
    return hit.length;
  }

  /** Kills the cell of the first attempt after the request was sent. */
  #crashing(next: () => RunOptions): () => RunOptions {
    let isFirst = true;
    return () => {
      const options = next();
      if (!isFirst) return options;
      isFirst = false;
      const { owner } = options.script;
      const hooks: RunOptions["hooks"] = () => {
        // After the request was sent.
        setImmediate(() => this.kill((each) => each === owner));
        return options.hooks();
      };
      return { ...options, hooks };
    };
  }
}

function hasRunOf({ runs, recent }: Cell, isHit: (owner: string) => boolean): boolean {
  for (const { script } of [...runs, ...recent]) if (isHit(script.owner)) return true;
  return false;
}

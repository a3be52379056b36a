import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { Cells } from "./cells.ts";
import type { Cell, RunOptions } from "./cell.ts";
import { CellError, faultMessages } from "./errors.ts";
import type { RpcTunnels } from "./gateway/rpc-tunnels.ts";
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

  constructor(underTest: CellsUnderTest, settings: CellSettings, logger: Logger, tunnels?: RpcTunnels) {
    super(settings, logger, tunnels);
    this.#underTest = underTest;
    underTest.all.push(this);
  }

  override async run(given: () => RunOptions): Promise<void> {
    // Not in the cells of objects: faults are injected into the cells of this pool.
    const next = (): RunOptions => ({ ...given(), near: undefined });
    const trouble = this.#underTest.faultFor?.(next().script);
    if (trouble === "cpu" || trouble === "memory") throw new CellError(trouble, faultMessages[trouble]);
    if (typeof trouble === "object") await delay(trouble.startMs);
    await super.run(trouble === "crash" ? this.#crashing(next) : next);
  }

  /** The processes that run, or have just run, scripts of these owners. */
  processesOf(isHit: (owner: string) => boolean): number[] {
    return this.#running(isHit).map((cell) => cell.process.pid);
  }

  #running(isHit: (owner: string) => boolean): Cell[] {
    return [...this.cells.values()].filter((cell) => hasRunOf(cell, isHit));
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
        setImmediate(() => {
          for (const { process } of this.#running((each) => each === owner)) process.kill("SIGKILL");
        });
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

import type { Logger } from "pino";
import type { Cell, RunOptions } from "./cell.ts";
import { CellError, CellFault, faultMessages, unavailable, type FaultKind } from "./errors.ts";
import { newCellRun } from "./gateway/cell-run.ts";
import type { RpcTunnels } from "./gateway/rpc-tunnels.ts";
import { guard } from "./limits/guard.ts";
import { DedicatedWatch } from "./limits/watch.ts";
import { causeOf } from "./process/exit-cause.ts";
import type { CellScript } from "./process/script.ts";
import type { CellSettings } from "./settings.ts";
import { unawaited } from "../platform/util/uncaught.ts";

/** The CPU time that a run has used so far, in milliseconds. `stop` ends the measuring. */
export interface Measured {
  readonly cpuMs: number;
  stop(): void;
}

/** A process for one piece of work, which has no other scripts. */
export class SingleUseCell {
  readonly #cell: Cell;
  /** Resolves when the process has ended, or is ended because it exceeded its limits. */
  readonly ended: Promise<CellError>;
  readonly #end: (error: CellError) => void;

  constructor(cell: Cell) {
    this.#cell = cell;
    const { promise, resolve } = Promise.withResolvers<CellError>();
    this.ended = promise;
    this.#end = resolve;
    unawaited(
      cell.process.exited.then((exit) => {
        resolve(errorOf(causeOf(exit)));
        return cell.die(causeOf(exit));
      }),
    );
  }

  /** Rejects with a CellError if the script throws, or with the process. */
  async run(options: RunOptions): Promise<void> {
    try {
      const thrown = await this.#cell.run(options, newCellRun(options.script));
      if (thrown !== undefined) throw new CellError("exception", thrown.message, { cause: thrown });
    } catch (error) {
      throw error instanceof CellFault ? errorOf(error.kind, error) : error;
    }
  }

  /** Ends the process when it uses more than this from now on. */
  measure(limits: Pick<CellScript, "cpuMs" | "memoryBytes">): Measured {
    const watch = new DedicatedWatch(this.#cell, limits);
    const unguard = guard(this.#cell, watch, (fault) => this.#end(errorOf(fault)));
    let isStopped = false;
    const stop = (): void => {
      if (!isStopped) unguard();
      isStopped = true;
    };
    unawaited(this.#cell.process.exited.then(stop));
    return {
      get cpuMs() {
        return watch.usedCpuMs;
      },
      stop,
    };
  }
}

function errorOf(kind: FaultKind, cause?: Error): CellError {
  if (kind === "ended") return unavailable("its process was ended", cause);
  const known = kind === "killed" ? "crashed" : kind;
  return new CellError(known, faultMessages[known], { cause });
}

/** Boots a process for each piece of work, and kills it with the work. The caller limits their number. */
export class SingleUseCells {
  readonly #settings: CellSettings;
  readonly #logger: Logger;
  readonly #tunnels: RpcTunnels | undefined;
  readonly #ending = new AbortController();
  readonly #uses = new Set<Promise<unknown>>();
  #count = 0;

  constructor(settings: CellSettings, logger: Logger, tunnels?: RpcTunnels) {
    this.#settings = settings;
    this.#logger = logger;
    this.#tunnels = tunnels;
  }

  /** Number of processes that boot, run or end. */
  get running(): number {
    return this.#uses.size;
  }

  /** Rejects with the reason of the signal if that ends the work. Settles when the process is gone. */
  async use<T>(signal: AbortSignal, work: (cell: SingleUseCell) => Promise<T>): Promise<T> {
    const using = this.#use(AbortSignal.any([signal, this.#ending.signal]), work);
    this.#uses.add(using);
    return using.finally(() => this.#uses.delete(using));
  }

  async #use<T>(signal: AbortSignal, work: (cell: SingleUseCell) => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    const cell = await this.#boot();
    const kill = (): void => {
      cell.die("ended");
    };
    signal.addEventListener("abort", kill);
    try {
      signal.throwIfAborted();
      return await work(new SingleUseCell(cell));
    } finally {
      signal.removeEventListener("abort", kill);
      kill();
      await cell.process.gone();
      signal.throwIfAborted();
    }
  }

  async #boot(): Promise<Cell> {
    const id = ++this.#count;
    // Imported with the first boot, as in Cells.
    const { Cell } = await import("./cell.ts");
    const onMessage = (line: string): void => this.#logger.debug({ singleUseCell: id }, line);
    try {
      return await Cell.boot(id, this.#settings, onMessage, { tunnels: this.#tunnels });
    } catch (error) {
      this.#logger.error({ err: error }, "a cell could not be started");
      throw unavailable();
    }
  }

  async close(): Promise<void> {
    this.#ending.abort(unavailable("the server is stopping"));
    await Promise.allSettled(this.#uses);
  }
}

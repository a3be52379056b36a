import { setPriority } from "node:os";
import { Brake } from "./brake.ts";
import type { Cell } from "./cell.ts";
import { CellError, CellFault, type FaultKind } from "./errors.ts";
import type { CellScript } from "./script.ts";
import type { CellSettings } from "./settings.ts";
import { SoloWatch } from "./watch.ts";

/** The pool's side: gives a booted cell, now or later, and takes it back. */
export interface SoloSource {
  /** Undefined where the signal says first that none is wanted any more. */
  want(signal: AbortSignal): Promise<Cell | undefined>;
  retire(cell: Cell): void;
  /** An owner's code went over its limits after it had answered. */
  convict(owner: string): void;
}

interface Kept {
  cell: Cell;
  timer: NodeJS.Timeout | undefined;
  watch: SoloWatch;
}

/** Requests of one owner that wait for a cell: one is on its way to them, until none of them waits. */
interface Waiting {
  requests: { resolve: (cell: Cell | undefined) => void; reject: (error: unknown) => void }[];
  order: AbortController;
}

const lookEveryMs = 2;
/** Those who have done harm yield to everyone else; most of the others are innocent. */
const niceness = 5;

/** Runs suspects: one request to a cell, and the cell to one owner, so that what is measured is the owner's. */
export class SoloCells {
  readonly #source: SoloSource;
  readonly #settings: CellSettings;
  /** Cells that wait for their owner's next request. */
  readonly #idle = new Map<string, Kept[]>();
  readonly #waiting = new Map<string, Waiting>();
  /** Cells that are in use. */
  #busy = 0;

  constructor(source: SoloSource, settings: CellSettings) {
    this.#source = source;
    this.#settings = settings;
  }

  /**
   * Runs with a cell of the owner's own. What is done there ends with a fault when it goes over the limits. Undefined, and
   * nothing has been done, when the owner need not be alone any more.
   */
  async run<T>(
    script: CellScript,
    isGuilty: boolean,
    work: (cell: Cell) => Promise<T>,
  ): Promise<{ result: T; usedCpuMs: number } | undefined> {
    const cell = this.#takeIdle(script.owner) ?? (await this.#acquire(script));
    if (cell === undefined) return undefined;
    this.#busy++;
    try {
      if (isGuilty) yieldToOthers(cell);
      if (!cell.scripts.has(script.id)) await this.#load(cell, script);
      return await this.#use(cell, script, work);
    } finally {
      this.#busy--;
    }
  }

  async #use<T>(
    cell: Cell,
    script: CellScript,
    work: (cell: Cell) => Promise<T>,
  ): Promise<{ result: T; usedCpuMs: number }> {
    const watch = new SoloWatch(cell, script);
    const stop = guard(cell, watch);
    try {
      const result = await work(cell);
      return { result, usedCpuMs: watch.usedCpuMs };
    } finally {
      stop();
      if (!cell.isDead) this.#release(script.owner, cell, watch);
    }
  }

  /** The owner is trusted again: its requests that wait need not. */
  free(owner: string): void {
    for (const { resolve } of this.#endWait(owner)) resolve(undefined);
  }

  close(): void {
    for (const list of this.#idle.values()) for (const { timer } of list) clearInterval(timer);
    this.#idle.clear();
  }

  /** A cell that is booted for the owner, or one that another of its requests is done with. */
  async #acquire({ owner }: CellScript): Promise<Cell | undefined> {
    const requests = this.#waiting.get(owner)?.requests ?? [];
    if (requests.length >= this.#settings.soloQueueMax)
      throw new CellError(
        "overloaded",
        "Too many requests wait for this script, which runs alone after a fault.",
      );
    return new Promise<Cell | undefined>((resolve, reject) => {
      requests.push({ resolve, reject });
      if (requests.length > 1) return;
      const order = new AbortController();
      this.#waiting.set(owner, { requests, order });
      this.#freeOneIdle();
      void this.#order(owner, order.signal);
    });
  }

  async #order(owner: string, signal: AbortSignal): Promise<void> {
    try {
      while (!signal.aborted) {
        const cell = await this.#source.want(signal);
        if (cell !== undefined && !this.#give(owner, cell)) this.#source.retire(cell);
      }
    } catch (error) {
      for (const { reject } of this.#endWait(owner)) reject(error);
    }
  }

  /** Hands a cell to a request of its owner that waits for one. */
  #give(owner: string, cell: Cell): boolean {
    const requests = this.#waiting.get(owner)?.requests;
    const next = requests?.shift();
    if (requests?.length === 0) this.#endWait(owner);
    next?.resolve(cell);
    return next !== undefined;
  }

  /** Nothing is ordered for the owner any more. Returns those that still wait. */
  #endWait(owner: string): Waiting["requests"] {
    const waiting = this.#waiting.get(owner);
    this.#waiting.delete(owner);
    waiting?.order.abort();
    return waiting?.requests ?? [];
  }

  async #load(cell: Cell, script: CellScript): Promise<void> {
    const limits = { cpuMs: this.#settings.startupCpuMs, memoryBytes: script.memoryBytes };
    const watch = new SoloWatch(cell, limits);
    let fault: FaultKind | undefined;
    const stop = guard(cell, watch, (found) => (fault = found));
    try {
      await cell.load(script);
    } catch (error) {
      if (fault !== undefined) throw new CellFault(fault, true);
      if (error instanceof CellFault) throw error;
      this.#source.retire(cell);
      throw error;
    } finally {
      stop();
    }
  }

  #takeIdle(owner: string): Cell | undefined {
    for (;;) {
      const cell = this.#idle.get(owner)?.at(-1)?.cell;
      if (cell === undefined) return undefined;
      this.#forget(owner, cell);
      if (!cell.isDead) return cell;
    }
  }

  /** To who waits for it, or for any. */
  #release(owner: string, cell: Cell, watch: SoloWatch): void {
    if (this.#give(owner, cell)) return;
    if (this.#waiting.size > 0) this.#source.retire(cell);
    else this.#keep(owner, cell, watch);
  }

  /** Keeps a cell for its owner's next request. What the last one left running goes on being counted. */
  #keep(owner: string, cell: Cell, watch: SoloWatch): void {
    let list = this.#idle.get(owner);
    if (list === undefined) this.#idle.set(owner, (list = []));
    const since = performance.now();
    const timer = setInterval(() => {
      const fault = watch.look();
      if (fault !== undefined) {
        cell.die(fault);
        this.#source.convict(owner);
      } else if (performance.now() - since > this.#settings.soloIdleMs) this.#source.retire(cell);
      else return;
      this.#forget(owner, cell);
    }, idleLookEveryMs);
    timer.unref();
    list.push({ cell, timer, watch });
  }

  #forget(owner: string, cell: Cell): void {
    const list = this.#idle.get(owner) ?? [];
    const index = list.findIndex((kept) => kept.cell === cell);
    if (index >= 0) clearInterval(list.splice(index, 1)[0]!.timer);
    if (list.length === 0) this.#idle.delete(owner);
  }

  /** Cells are few: one that only waits makes room for a suspect that has none. */
  #freeOneIdle(): void {
    const { soloMax } = this.#settings;
    const idle = [...this.#idle.values()].reduce((sum, list) => sum + list.length, 0);
    if (idle === 0 || (idle < soloMax / 2 && idle + this.#busy < soloMax)) return;
    const [owner, list] = this.#idle.entries().next().value!;
    const { cell } = list[0]!;
    this.#forget(owner, cell);
    this.#source.retire(cell);
  }
}

const idleLookEveryMs = 20;

/** Looks until it is told to stop, and has a brake on meanwhile; ends the cell at the first fault. */
function guard(cell: Cell, watch: SoloWatch, onFault: (fault: FaultKind) => void = () => {}): () => void {
  const brake = Brake.on(cell.process.pid, watch.endCpuMs);
  const look = (): void => {
    const fault = watch.look();
    if (fault !== undefined) {
      onFault(fault);
      cell.die(fault);
      return;
    }
    brake?.moveTo(watch.endCpuMs);
    timer = setTimeout(look, lookEveryMs);
  };
  let timer = setTimeout(look, lookEveryMs);
  return () => {
    clearTimeout(timer);
    brake?.release();
  };
}

function yieldToOthers(cell: Cell): void {
  try {
    setPriority(cell.process.pid, niceness);
  } catch {
    // it runs on as it is
  }
}

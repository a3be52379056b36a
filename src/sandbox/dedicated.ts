import { EventEmitter } from "node:events";
import { setPriority } from "node:os";
import { RunAdmission, type RunAdmissionLimits, type ScriptSlots } from "./limits/admission.ts";
import { guard } from "./limits/guard.ts";
import type { Cell } from "./cell.ts";
import { CellError, CellFault, type FaultKind } from "./errors.ts";
import type { CellScript } from "./process/script.ts";
import type { CellSettings } from "./settings.ts";
import { DedicatedWatch } from "./limits/watch.ts";
import { endsWithin } from "../platform/util/ends-within.ts";
import { unawaited } from "../platform/util/uncaught.ts";

/** Boots and retires dedicated cells. */
export interface DedicatedSource {
  /** Resolves with a booted cell; with undefined if the signal aborts first. */
  want(signal: AbortSignal): Promise<Cell | undefined>;
  retire(cell: Cell): void;
  /** An owner's code exceeded its limits after its request was answered. */
  recordFault(owner: string): void;
}

interface Kept {
  cell: Cell;
  timer: NodeJS.Timeout | undefined;
  watch: DedicatedWatch;
}

/** The record of the owner (see Quarantine), and whether another script made the call. */
interface OwnerState {
  hasFaulted?: boolean;
  isHeavy?: boolean;
  isTrial?: boolean;
  isCall?: boolean;
}

/** Requests of one owner that wait for a cell. Cells are ordered one after the other until no request waits. */
interface OwnerQueue {
  requests: { resolve: (cell: Cell | undefined) => void; reject: (error: unknown) => void }[];
  order: AbortController;
}

/** Owners with faults and owners with heavy runs get a lower priority; most others are innocent. */
const niceness = 10;

/**
 * Runs the requests of quarantined owners: one request in a cell at a time, and only one owner per cell, so
 * that CPU time and memory are measured exactly.
 */
export class DedicatedCells {
  readonly #source: DedicatedSource;
  readonly #settings: CellSettings;
  /** Cells that are kept for the next request of their owner. */
  readonly #idle = new Map<string, Kept[]>();
  readonly #waiting = new Map<string, OwnerQueue>();
  /** By owner: emits `close` when the owner leaves quarantine, for its requests that wait for their turn. */
  readonly #releaseEvents = new Map<string, EventEmitter>();
  /**
   * Runs that have a cell or wait for one. An account cannot take all dedicated cells, and requests of
   * visitors leave some cells to the scripts that they call.
   */
  readonly #admissions: { requests: RunAdmission; calls: RunAdmission };
  /** By owner: the end of the run that decides whether the owner leaves quarantine. */
  readonly #trials = new Map<string, Promise<void>>();
  readonly #runs = new Map<Cell, { share: ScriptSlots }>();

  constructor(source: DedicatedSource, settings: CellSettings) {
    this.#source = source;
    this.#settings = settings;
    const { dedicatedMax, waitMs, patienceMs } = settings;
    const limits: RunAdmissionLimits = {
      capacity: dedicatedMax,
      accountMax: Math.max(1, Math.floor(dedicatedMax / 2)),
      scriptShare: Infinity,
      // No limit here: each waiting run already has one of a limited number of slots.
      accountWaitingMax: Infinity,
      waitingMax: Infinity,
      waitMs,
      patienceMs,
    };
    const evict = (share: ScriptSlots): boolean => this.#evict(share);
    const requests = { ...limits, capacity: Math.ceil(dedicatedMax * requestsPart) };
    this.#admissions = {
      requests: new RunAdmission(requests, evict),
      calls: new RunAdmission(limits, evict),
    };
  }

  /**
   * Runs `work` in a cell of the owner's own, with a CellFault when the run exceeds its limits. Returns
   * undefined, without having run, if the owner left quarantine meanwhile or if another run was its trial.
   */
  async run<T>(
    script: CellScript,
    ownerState: OwnerState,
    work: (cell: Cell) => Promise<T>,
  ): Promise<{ result: T; usedCpuMs: number } | undefined> {
    const { owner } = script;
    const { isTrial = false } = ownerState;
    const going = isTrial ? this.#trials.get(owner) : undefined;
    if (going !== undefined && (await endsWithin(this.#settings.patienceMs, going))) return undefined;
    const run = this.#runInTurn(script, ownerState, work);
    if (isTrial && !this.#trials.has(owner)) {
      const trial = run.then(nothing, nothing);
      this.#trials.set(owner, trial);
      unawaited(trial.then(() => this.#trials.delete(owner)));
    }
    return run;
  }

  async #runInTurn<T>(
    script: CellScript,
    ownerState: OwnerState,
    work: (cell: Cell) => Promise<T>,
  ): Promise<{ result: T; usedCpuMs: number } | undefined> {
    const admission = ownerState.isCall === true ? this.#admissions.calls : this.#admissions.requests;
    const share = admission.of(script.accountId, script.owner, "request");
    if (!admission.enter(share)) {
      const { dedicatedQueueMax } = this.#settings;
      const isRefused = ownerState.hasFaulted === true && share.waiting >= dedicatedQueueMax;
      const waited = isRefused ? "refused" : await this.#waitForTurn(admission, share, script.owner);
      if (waited === "left") return undefined;
      if (waited === "refused")
        throw new CellError(
          "overloaded",
          "Too many requests are waiting for quarantined scripts of this account.",
        );
    }
    try {
      return await this.#runAdmitted(script, ownerState, work, share);
    } finally {
      admission.leave(share);
    }
  }

  async #runAdmitted<T>(
    script: CellScript,
    { hasFaulted = false, isHeavy = false }: OwnerState,
    work: (cell: Cell) => Promise<T>,
    share: ScriptSlots,
  ): Promise<{ result: T; usedCpuMs: number } | undefined> {
    const cell = this.#takeIdle(script.owner) ?? (await this.#acquire(script));
    if (cell === undefined) return undefined;
    const run = { share };
    this.#runs.set(cell, run);
    try {
      if (hasFaulted || isHeavy) yieldToOthers(cell);
      if (!cell.scripts.has(script.id)) await this.#load(cell, script);
      return await this.#use(cell, script, work);
    } finally {
      // The cell may already belong to the owner's next request.
      if (this.#runs.get(cell) === run) this.#runs.delete(cell);
    }
  }

  /** Ends a run that has lasted for `patienceMs`, to free a cell for an account that has fewer. */
  #evict(share: ScriptSlots): boolean {
    const before = performance.now() - this.#settings.patienceMs;
    for (const [cell, run] of this.#runs) {
      const [cellRun] = cell.runs;
      if (run.share !== share || cellRun?.controller === undefined || cellRun.sentAt > before) continue;
      const { controller } = cellRun;
      cellRun.controller = undefined;
      controller.abort(
        new CellError(
          "overloaded",
          "The run was ended because quarantined scripts of other accounts are waiting.",
        ),
      );
      return true;
    }
    return false;
  }

  async #use<T>(
    cell: Cell,
    script: CellScript,
    work: (cell: Cell) => Promise<T>,
  ): Promise<{ result: T; usedCpuMs: number }> {
    const watch = new DedicatedWatch(cell, script);
    const stop = guard(cell, watch);
    try {
      const result = await work(cell);
      return { result, usedCpuMs: watch.usedCpuMs };
    } finally {
      stop();
      if (!cell.isDead) this.#release(script.owner, cell, watch);
    }
  }

  /**
   * Returns `left` if the owner left quarantine. The wait goes on if the visitor leaves, as the wait for a
   * cell does.
   */
  async #waitForTurn(
    admission: RunAdmission,
    share: ScriptSlots,
    owner: string,
  ): Promise<"admitted" | "refused" | "left"> {
    let releaseEvent = this.#releaseEvents.get(owner);
    if (releaseEvent === undefined) {
      releaseEvent = new EventEmitter().setMaxListeners(Infinity);
      this.#releaseEvents.set(owner, releaseEvent);
    }
    const waited = await admission.wait(share, releaseEvent);
    if (releaseEvent.listenerCount("close") === 0 && this.#releaseEvents.get(owner) === releaseEvent)
      this.#releaseEvents.delete(owner);
    return waited;
  }

  /** The owner left quarantine: its waiting requests return to the shared cells. */
  free(owner: string): void {
    const releaseEvent = this.#releaseEvents.get(owner);
    this.#releaseEvents.delete(owner);
    releaseEvent?.emit("close");
    for (const { resolve } of this.#endWait(owner)) resolve(undefined);
  }

  close(): void {
    for (const list of this.#idle.values()) for (const { timer } of list) clearInterval(timer);
    this.#idle.clear();
    for (const admission of Object.values(this.#admissions)) admission.close();
  }

  /** Returns a newly booted cell, or one that another request of the owner has released. */
  async #acquire({ owner }: CellScript): Promise<Cell | undefined> {
    const requests = this.#waiting.get(owner)?.requests ?? [];
    return new Promise<Cell | undefined>((resolve, reject) => {
      requests.push({ resolve, reject });
      if (requests.length > 1) return;
      const order = new AbortController();
      this.#waiting.set(owner, { requests, order });
      this.#freeOneIdle();
      unawaited(this.#order(owner, order.signal));
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

  /** Gives a cell to a waiting request of the owner. Returns false if none waits. */
  #give(owner: string, cell: Cell): boolean {
    const requests = this.#waiting.get(owner)?.requests;
    const next = requests?.shift();
    if (requests?.length === 0) this.#endWait(owner);
    next?.resolve(cell);
    return next !== undefined;
  }

  /** Stops ordering cells for the owner. Returns the requests that still wait. */
  #endWait(owner: string): OwnerQueue["requests"] {
    const waiting = this.#waiting.get(owner);
    this.#waiting.delete(owner);
    waiting?.order.abort();
    return waiting?.requests ?? [];
  }

  async #load(cell: Cell, script: CellScript): Promise<void> {
    const limits = { cpuMs: this.#settings.startupCpuMs, memoryBytes: script.memoryBytes };
    const watch = new DedicatedWatch(cell, limits);
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

  /**
   * Gives the cell to the owner's next waiting request. Otherwise retires it if another owner waits, and else
   * keeps it.
   */
  #release(owner: string, cell: Cell, watch: DedicatedWatch): void {
    if (this.#give(owner, cell)) return;
    if (this.#waiting.size > 0) this.#source.retire(cell);
    else this.#keep(owner, cell, watch);
  }

  /** Keeps a cell for the owner's next request, and keeps measuring the work that the last one left running. */
  #keep(owner: string, cell: Cell, watch: DedicatedWatch): void {
    let list = this.#idle.get(owner);
    if (list === undefined) this.#idle.set(owner, (list = []));
    const since = performance.now();
    const timer = setInterval(() => {
      const fault = watch.check();
      if (fault !== undefined) {
        cell.die(fault);
        this.#source.recordFault(owner);
      } else if (performance.now() - since > this.#settings.dedicatedIdleMs) this.#source.retire(cell);
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

  /** Retires an idle cell if at least half of the dedicated cells are idle, or if all of them are in use or idle. */
  #freeOneIdle(): void {
    const { dedicatedMax } = this.#settings;
    const idle = [...this.#idle.values()].reduce((sum, list) => sum + list.length, 0);
    if (idle === 0 || (idle < dedicatedMax / 2 && idle + this.#runs.size < dedicatedMax)) return;
    const [owner, list] = this.#idle.entries().next().value!;
    const { cell } = list[0]!;
    this.#forget(owner, cell);
    this.#source.retire(cell);
  }
}

const idleLookEveryMs = 20;
/** The part of dedicated cells that requests of visitors may use. */
const requestsPart = 7 / 8;
const nothing = (): void => {};

function yieldToOthers(cell: Cell): void {
  try {
    setPriority(cell.process.pid, niceness);
  } catch {
    // the priority stays as it is
  }
}

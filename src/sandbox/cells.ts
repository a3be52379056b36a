import type { Logger } from "pino";
import { RunAdmission, type ScriptSlots } from "./limits/admission.ts";
import type { Cell, RunOptions } from "./cell.ts";
import { CellError, CellFault, faultMessages, unavailable, type FaultKind } from "./errors.ts";
import type { Thrown } from "./gateway/exchange.ts";
import type { NearCell } from "./near-cell.ts";
import { TerminatingCells } from "./limits/terminating.ts";
import { DispatchTally } from "./dispatches/tally.ts";
import type { RpcTunnels } from "./gateway/rpc-tunnels.ts";
import { LargeLoads } from "./limits/large-loads.ts";
import { initialLifecycle, isWornWaiting, step, type CellEffect, type LifecycleEvent } from "./lifecycle.ts";
import { MemoryRelief } from "./limits/memory-relief.ts";
import { causeOf } from "./process/exit-cause.ts";
import type { CellProcess } from "./process/process.ts";
import type { CellScript } from "./process/script.ts";
import { admissionLimits, type CellSettings } from "./settings.ts";
import { RunAttempts, hasAnswered, isRetryable, withBody } from "./gateway/retry.ts";
import { DedicatedCells } from "./dedicated.ts";
import { Quarantine } from "./limits/quarantine.ts";
import { endOldest, newCellRun, waitForSlot, type CellRun } from "./gateway/cell-run.ts";
import { SharedWatch } from "./limits/watch.ts";
import { unawaited } from "../platform/util/uncaught.ts";

const checkEveryMs = 10;
/** A cell is replaced near `cellBytesMax`, and ends at this multiple of it, while it drains too. */
const rssExcess = 1.5;
const idleChecks = 10; // rounds after which idle cells are checked
/** From this number of runs on, a cell is busy, and another cell is chosen even if it must load the script first. */
const sharedBusy = 64;
/**
 * Runs scripts in shared workerd processes. When a cell stalls, takes too much memory or dies, the owners
 * that may have caused it are quarantined; other requests are retried, and the culprit gets an error.
 */
export class Cells {
  readonly #settings: CellSettings;
  readonly #logger: Logger;
  readonly #tunnels: RpcTunnels | undefined;
  readonly #quarantine: Quarantine;
  readonly #dedicated: DedicatedCells;
  protected readonly cells = new Map<number, Cell>();
  readonly #shared: Cell[] = [];
  /** For shared and draining cells. */
  readonly #watches = new Map<Cell, { watch: SharedWatch; memory: MemoryRelief }>();
  /** Cells that get no new requests, with the time when draining began. */
  readonly #draining = new Map<Cell, number>();
  readonly #terminating: TerminatingCells;
  readonly #largeLoads: LargeLoads;
  /** Slots for requests and for WebSockets, by account and script. */
  readonly #requests: RunAdmission;
  readonly #sockets: RunAdmission;
  readonly #waitingShared: ((cell: Cell | undefined) => void)[] = [];
  readonly #waitingDedicated: {
    resolve: (cell: Cell | undefined) => void;
    reject: (error: Error) => void;
  }[] = [];
  #lifecycle = initialLifecycle;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  /** Numbers of ended cells by reason. */
  readonly ends = { cpu: 0, memory: 0, crashed: 0, killed: 0, ended: 0, replaced: 0 };
  readonly dispatches = new DispatchTally();
  #checks = 0;

  /** `tunnels` connect the cells to the cells of objects. `quarantine` may be shared; by default each pool has its own. */
  constructor(settings: CellSettings, logger: Logger, tunnels?: RpcTunnels, quarantine?: Quarantine) {
    this.#tunnels = tunnels;
    this.#settings = settings;
    this.#logger = logger;
    this.#quarantine = quarantine ?? new Quarantine(settings.dedicatedRunsToTrust);
    this.#terminating = new TerminatingCells(settings);
    this.#largeLoads = new LargeLoads(settings.startupCpuMs);
    const evict = (share: ScriptSlots): boolean => this.#evict(share);
    this.#requests = new RunAdmission(admissionLimits(settings, settings.inFlightMax), evict);
    this.#sockets = new RunAdmission(admissionLimits(settings, settings.socketsMax), evict);
    this.#dedicated = new DedicatedCells(
      {
        want: async (signal) => this.#wantDedicated(signal),
        retire: (cell) => this.#retire(cell),
        recordFault: (owner) => this.#quarantine.recordFault(owner),
      },
      settings,
    );
  }

  /** Boots the cells, so that the first request need not wait for them. */
  start(): void {
    if (this.#isClosed || this.#timer !== undefined) return;
    this.#timer = setInterval(() => this.#check(), checkEveryMs);
    this.#timer.unref();
    this.#apply({ type: "tick", now: performance.now() });
  }

  /** Numbers of cells, for tests, benchmarks and the log. */
  get counts(): { shared: number; all: number } {
    return { shared: this.#shared.length, all: this.cells.size };
  }

  /** Number of admitted requests; waiting ones are not counted. */
  get inFlight(): number {
    return this.#requests.inFlight;
  }

  /** Pids of the running cells. */
  get pids(): number[] {
    return this.processes.map(({ pid }) => pid);
  }

  get processes(): Pick<CellProcess, "pid" | "cpuMs" | "rssBytes">[] {
    return [...this.cells.values()].map((cell) => cell.process);
  }

  /** Runs a script for a request. Rejects with a CellError if nothing was sent. `next` also serves retries. */
  async run(next: () => RunOptions): Promise<void> {
    this.start();
    const first = next();
    const { script, answer, kind = "request" } = first;
    const admission = "socket" in answer ? this.#sockets : this.#requests;
    const share = admission.of(script.accountId, script.owner, kind);
    if (!admission.enter(share) && !(await waitForSlot(admission, share, first))) return;
    const attempts = new RunAttempts(first.request.body);
    try {
      for (let options = first; ; options = withBody(next(), attempts.body)) {
        const isAlone = attempts.mustRunAlone || this.#quarantine.has(options.script.owner);
        try {
          const thrown = await (isAlone ? this.#runAlone(options, share) : this.#runShared(options, share));
          if (thrown === undecided) continue;
          if (thrown !== undefined) throw new CellError("exception", thrown.message, { cause: thrown });
          return;
        } catch (error) {
          if (!(error instanceof CellFault)) throw error;
          this.#takeFault(error, options, isAlone, attempts);
        }
      }
    } catch (error) {
      this.dispatches.failed(script, error);
      throw error;
    } finally {
      admission.leave(share);
      this.dispatches.ran(script);
    }
  }

  /** Throws the error for the client, unless the request may be sent again after a fault. */
  #takeFault(error: CellFault, options: RunOptions, isAlone: boolean, attempts: RunAttempts): void {
    const { owner } = options.script;
    const isKilled = error.kind === "killed" || error.kind === "ended";
    const kind = isKilled ? "crashed" : error.kind;
    const canRetry = attempts.next(error, options);
    if (isAlone && !isKilled) {
      this.#quarantine.recordFault(owner);
      this.#logger.warn({ script: owner, fault: kind }, "a script exceeded its limits");
      throw new CellError(kind, faultMessages[kind], { cause: error });
    }
    if (canRetry) return;
    if (error.kind === "ended") throw unavailable("its cell was replaced", error);
    throw new CellError(error.mayBeCulprit ? kind : "crashed", faultMessages[kind], { cause: error });
  }

  /** Whether an owner is quarantined: its requests run in dedicated cells. */
  isQuarantined(owner: string): boolean {
    return this.#quarantine.has(owner);
  }

  /** Records a run without a fault. Called where other code watches the owner's runs for faults. */
  recordSuccess(owner: string): void {
    this.#quarantine.recordSuccess(owner);
  }

  /** Increases with each owner that enters or leaves quarantine. */
  get quarantineRevision(): number {
    return this.#quarantine.revision;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#dedicated.close();
    this.#terminating.close();
    const cells = [...this.cells.values()];
    this.#apply({ type: "close", now: performance.now() });
    this.#refuseWaiting();
    await Promise.all(cells.map(async (cell) => cell.process.exited));
  }

  /** Whether the script was sent to a shared cell. */
  #isLoaded({ id }: CellScript): boolean {
    for (const { scripts } of this.#shared) if (scripts.has(id)) return true;
    return false;
  }

  #runShared(options: RunOptions, share: ScriptSlots): Promise<Thrown | undefined> {
    const [{ script }, near] = [options, options.near?.()];
    return near !== undefined || this.#isLoaded(script)
      ? this.#runInShared(options, share, near)
      : this.#largeLoads.run(script, async () => this.#runInShared(options, share));
  }

  async #runInShared(options: RunOptions, share: ScriptSlots, near?: NearCell): Promise<Thrown | undefined> {
    const { script, request, answer } = options;
    const cell = near?.cell ?? this.#pick(script) ?? (await this.#nextShared());
    const cellRun = newCellRun(script, share, () => isRetryable(request) && !hasAnswered(answer));
    const thrown = await cell.run(near?.prepared(options) ?? options, cellRun);
    near?.ran(cellRun);
    this.dispatches.spent(cell, cellRun, request.metadata);
    // The share of CPU time is an estimate. A dedicated cell measures exactly.
    if (cellRun.cpuShareMs > script.cpuMs) this.#quarantine.add(script.owner);
    return thrown;
  }

  async #runAlone(options: RunOptions, share: ScriptSlots): Promise<Thrown | undefined | typeof undecided> {
    const { script } = options;
    const { owner } = script;
    const ownerState = {
      hasFaulted: this.#quarantine.hasFaulted(owner),
      isHeavy: this.#quarantine.isHeavy(owner),
      isTrial: this.#quarantine.isUntested(owner),
      isCall: share.kind === "call",
    };
    const run = await this.#dedicated.run(script, ownerState, async (cell) =>
      cell.run(options, newCellRun(script, share)),
    );
    if (run === undefined) return undecided;
    const { result, usedCpuMs } = run;
    this.dispatches.spentAlone(script, usedCpuMs);
    this.#quarantine.recordRun(owner, usedCpuMs, this.#settings.stallCpuMs);
    if (!this.#quarantine.has(owner)) this.#dedicated.free(owner);
    return result;
  }

  /** Picks a cell that has the script and is not busy, else the one with the fewest runs. */
  #pick({ id }: CellScript): Cell | undefined {
    let best: Cell | undefined;
    for (const cell of this.#shared) {
      if (cell.scripts.has(id) && cell.runs.size < sharedBusy) return cell;
      if (best === undefined || cell.runs.size < best.runs.size) best = cell;
    }
    return best;
  }

  /** Waits for a cell while there is none. */
  async #nextShared(): Promise<Cell> {
    const cell = await new Promise<Cell | undefined>((resolve) => {
      if (this.#isClosed) resolve(undefined);
      else this.#waitingShared.push(resolve);
    });
    if (cell === undefined) throw unavailable();
    return cell;
  }

  async #wantDedicated(signal: AbortSignal): Promise<Cell | undefined> {
    if (this.#isClosed) throw unavailable();
    return new Promise<Cell | undefined>((resolve, reject) => {
      const waiter = { resolve, reject };
      signal.addEventListener("abort", () => {
        const index = this.#waitingDedicated.indexOf(waiter);
        if (index < 0) return;
        this.#waitingDedicated.splice(index, 1);
        this.#apply({ type: "dedicatedUnwanted", now: performance.now() });
        resolve(undefined);
      });
      this.#waitingDedicated.push(waiter);
      this.#apply({ type: "dedicatedWanted", now: performance.now() });
    });
  }

  /** Ends the oldest run of a share that has lasted for `patienceMs`, to free a slot for a share that has fewer. */
  #evict(share: ScriptSlots): boolean {
    return endOldest(share, this.cells.values(), performance.now() - this.#settings.patienceMs);
  }

  #retire(cell: Cell): void {
    this.#apply({ type: "retire", id: cell.id, now: performance.now() });
  }

  /** Checks every shared and draining cell once. */
  #check(): void {
    const now = performance.now();
    this.#checks++;
    for (const [cell, { watch, memory }] of this.#watches) {
      // Work that an answered request left running is noticed a little later.
      if (cell.runs.size === 0 && this.#checks % idleChecks !== 0) continue;
      const isFull = watch.rssBytes > this.#settings.cellBytesMax * rssExcess;
      const fault = watch.check(now, this.#settings) ?? (isFull ? "memory" : undefined);
      if (fault !== undefined) this.#fault(cell, fault, this.#end(cell, fault));
      else if (this.#draining.has(cell)) this.#endDrained(cell, now);
      else memory.relieve(watch.rssBytes);
    }
    this.#terminating.killDue(now);
    if (this.#lifecycle.bootAfter > 0 || isWornWaiting(this.#lifecycle)) this.#apply({ type: "tick", now });
  }

  /** Ends a draining cell without runs after `lingerMs` (for work after answers), and any after `drainMsMax`. */
  #endDrained(cell: Cell, now: number): void {
    const { lingerMs, drainMsMax } = this.#settings;
    const isDone = cell.runs.size === 0 && now - cell.lastActivityAt > lingerMs;
    if (isDone || now - this.#draining.get(cell)! > drainMsMax) this.#retire(cell);
  }

  /** Kills a faulty cell, or lets it terminate if it has runs of innocent owners that cannot be retried. */
  #end(cell: Cell, kind: FaultKind): CellRun[] {
    if (!this.#terminating.isFor(cell)) return cell.die(kind);
    this.#terminating.add(cell, kind, performance.now());
    return cell.abandon(kind);
  }

  #fault(cell: Cell, kind: FaultKind, possibleCulprits: readonly CellRun[]): void {
    const owners = Map.groupBy(possibleCulprits, ({ script }) => script.owner);
    for (const [owner, { length }] of owners) this.#quarantine.add(owner, length);
    this.#logger.warn(
      { cell: cell.id, fault: kind, requests: cell.runs.size, quarantined: [...owners.keys()] },
      "ended a shared cell after a fault",
    );
    this.#gone(cell);
  }

  #gone(cell: Cell): void {
    if (!this.cells.has(cell.id)) return;
    this.#forget(cell);
    this.#apply({ type: "exited", id: cell.id, now: performance.now() });
  }

  #forget(cell: Cell): void {
    this.cells.delete(cell.id);
    this.#unshare(cell);
    this.#watches.delete(cell);
    this.#draining.delete(cell);
  }

  #unshare(cell: Cell): void {
    const index = this.#shared.indexOf(cell);
    if (index >= 0) this.#shared.splice(index, 1);
  }

  async #waitForEnd(cell: Cell): Promise<void> {
    const exit = await cell.process.exited;
    const kind = causeOf(exit);
    this.ends[cell.endedBy ?? kind]++;
    if (cell.isDead) this.#gone(cell);
    else this.#fault(cell, kind, cell.die(kind));
  }

  #apply(event: LifecycleEvent): void {
    const { state, effects } = step(this.#lifecycle, event, this.#settings);
    this.#lifecycle = state;
    for (const effect of effects) this.#carryOut(effect);
  }

  #carryOut(effect: CellEffect): void {
    const cell = this.cells.get(effect.id);
    switch (effect.do) {
      case "boot":
        unawaited(this.#boot(effect.id));
        break;
      case "share":
        this.#share(cell!);
        for (const resolve of this.#waitingShared.splice(0)) resolve(cell);
        break;
      case "giveDedicated":
        this.#waitingDedicated.shift()?.resolve(cell);
        break;
      case "drain":
        this.#logger.info({ cell: effect.id, requests: cell!.runs.size }, "replacing a cell");
        this.#unshare(cell!);
        this.#draining.set(cell!, performance.now());
        break;
      case "end":
        if (cell === undefined) break;
        this.#forget(cell);
        if (cell.runs.size > 0 && !this.#isClosed) cell.die("ended");
        else cell.close();
        break;
    }
  }

  #share(cell: Cell): void {
    this.#shared.push(cell);
    const replace = (): void => this.#apply({ type: "worn", id: cell.id, now: performance.now() });
    const memory = new MemoryRelief(cell, this.#settings.cellBytesMax, replace);
    cell.gateway.room = () => memory.room();
    this.#watches.set(cell, { watch: new SharedWatch(cell, performance.now()), memory });
  }

  async #boot(id: number): Promise<void> {
    try {
      // Imported with the first boot: a program that runs no script starts 10 % faster.
      const { Cell } = await import("./cell.ts");
      const onMessage = (line: string): void => this.#logger.debug({ cell: id }, line);
      const cell = await Cell.boot(id, this.#settings, onMessage, { tunnels: this.#tunnels });
      if (this.#isClosed) {
        cell.close();
        return;
      }
      this.cells.set(id, cell);
      unawaited(this.#waitForEnd(cell));
      this.#apply({ type: "booted", id, now: performance.now() });
    } catch (error) {
      this.#logger.error({ err: error }, "a cell could not be started");
      this.#apply({ type: "bootFailed", id, now: performance.now() });
      // After repeated failures waiting requests are refused instead of waiting on.
      if (this.#lifecycle.failures >= failuresToRefuse) this.#refuseWaiting();
    }
  }

  #refuseWaiting(): void {
    if (this.#isClosed) for (const admission of [this.#requests, this.#sockets]) admission.close();
    for (const resolve of this.#waitingShared.splice(0)) resolve(undefined);
    for (const { reject } of this.#waitingDedicated.splice(0)) {
      this.#apply({ type: "dedicatedUnwanted", now: performance.now() });
      reject(unavailable());
    }
  }
}

/** The run need not be alone any more: its owner left quarantine, or another run was its trial. */
const undecided = Symbol("undecided");

const failuresToRefuse = 3;

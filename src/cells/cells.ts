import type { Logger } from "pino";
import type { Cell, RunOptions, Visit } from "./cell.ts";
import { CellError, CellFault, type FaultKind } from "./errors.ts";
import type { Thrown } from "./exchange.ts";
import { initialLifecycle, step, type Effect, type Happening } from "./lifecycle.ts";
import { MemoryBudget, type Relief } from "./memory-budget.ts";
import type { Exit } from "./process.ts";
import type { CellScript } from "./script.ts";
import type { CellSettings } from "./settings.ts";
import { SoloCells } from "./solo.ts";
import { Suspects } from "./suspects.ts";
import { SharedWatch } from "./watch.ts";

const lookEveryMs = 10;
/** A cell without requests is looked at each so many times. */
const idleLooks = 10;
/** Deaths of shared cells, none of them its own fault, after which a request gets a cell to itself. */
const faultsToRunAlone = 3;
const attemptsMax = 10;
/** Requests in a cell from which on another is better than one that has the script: it costs memory, and a start. */
const sharedBusy = 64;
/** Methods that may be sent twice (RFC 9110, 9.2.1). */
const repeatable: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/**
 * Runs scripts in workerd processes. Scripts share cells; when a cell stalls, takes too much memory or dies, those who may
 * have done it run alone from then on, everyone else is tried again elsewhere, and only the culprit gets an error.
 */
export class Cells {
  readonly #settings: CellSettings;
  readonly #logger: Logger;
  readonly #suspects: Suspects;
  readonly #solo: SoloCells;
  readonly #cells = new Map<number, Cell>();
  readonly #shared: Cell[] = [];
  /** Of those that share, and of those that did. */
  readonly #watches = new Map<Cell, { watch: SharedWatch; budget: MemoryBudget }>();
  /** Cells that get no more requests, and since when. */
  readonly #draining = new Map<Cell, number>();
  readonly #unloading = new WeakSet<Cell>();
  readonly #waitingShared: ((cell: Cell | undefined) => void)[] = [];
  readonly #waitingSolo: {
    resolve: (cell: Cell | undefined) => void;
    reject: (error: Error) => void;
  }[] = [];
  #lifecycle = initialLifecycle;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #looks = 0;

  constructor(settings: CellSettings, logger: Logger) {
    this.#settings = settings;
    this.#logger = logger;
    this.#suspects = new Suspects(settings.soloRunsToTrust);
    this.#solo = new SoloCells(
      {
        want: async (signal) => this.#wantSolo(signal),
        retire: (cell) => this.#retire(cell),
        convict: (owner) => this.#suspects.convict(owner),
      },
      settings,
    );
  }

  /** Boots the cells, so that the first request need not wait for them. */
  start(): void {
    if (this.#isClosed || this.#timer !== undefined) return;
    this.#timer = setInterval(() => this.#look(), lookEveryMs);
    this.#timer.unref();
    this.#happened({ type: "tick", now: performance.now() });
  }

  /** Cells by what they do, for tests, benchmarks and the log. */
  get counts(): { shared: number; all: number } {
    return { shared: this.#shared.length, all: this.#cells.size };
  }

  /** Resident bytes of each. */
  get memory(): number[] {
    return [...this.#cells.values()].map((cell) => cell.process.rssBytes());
  }

  /** Pids of the cells that are running. */
  get pids(): number[] {
    return [...this.#cells.values()].map((cell) => cell.process.pid);
  }

  /**
   * Runs a script for a request; its answer goes to the sink. Rejects with a CellError while nothing has been sent. A request
   * that can be repeated and lost its cell through no fault of its own is tried again, as `next` then says.
   */
  async run(next: () => RunOptions): Promise<void> {
    this.start();
    let faults = 0;
    for (let attempt = 1; ; attempt++) {
      const options = next();
      const { script, request, answer } = options;
      const isRepeatable = request.body === null && repeatable.has(request.method);
      const isAlone = faults >= faultsToRunAlone || this.#suspects.has(script.owner);
      try {
        const thrown = await (isAlone ? this.#runAlone(options) : this.#runShared(options));
        if (thrown === trusted) continue;
        if (thrown !== undefined) throw new CellError("exception", thrown.message, { cause: thrown });
        return;
      } catch (error) {
        if (!(error instanceof CellFault)) throw error;
        const { isSuspect } = error;
        const isKilled = error.kind === "killed";
        const kind = error.kind === "killed" ? "crashed" : error.kind;
        if (!isKilled) faults++;
        if (isAlone && !isKilled) {
          this.#suspects.convict(script.owner);
          this.#logger.warn({ script: script.owner, fault: kind }, "a script went over its limits");
          throw new CellError(kind, messages[kind], { cause: error });
        }
        if (!isRepeatable || hasAnswered(answer) || attempt >= attemptsMax)
          throw new CellError(isSuspect ? kind : "crashed", messages[kind], { cause: error });
      }
    }
  }

  /** Whether an owner's code may have done harm, and runs alone. */
  isSuspect(owner: string): boolean {
    return this.#suspects.has(owner);
  }

  /** What an owner is suspected of has not happened while it could have been seen. */
  behaved(owner: string): void {
    this.#suspects.behaved(owner);
  }

  /** Grows with each change of who is suspected. */
  get suspectsRevision(): number {
    return this.#suspects.revision;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#solo.close();
    const cells = [...this.#cells.values()];
    this.#happened({ type: "close", now: performance.now() });
    this.#refuseWaiting();
    await Promise.all(cells.map(async (cell) => cell.process.exited));
  }

  async #runShared(options: RunOptions): Promise<Thrown | undefined> {
    const { script } = options;
    const cell = await this.#pick(script);
    const visit: Visit = { script, sentAt: performance.now(), cpuShareMs: 0, fault: undefined };
    const thrown = await cell.run(options, visit);
    // Only a share of what the cell used, but a good reason to measure exactly from now on.
    if (visit.cpuShareMs > script.cpuMs) this.#suspects.suspect(script.owner);
    return thrown;
  }

  async #runAlone(options: RunOptions): Promise<Thrown | undefined | typeof trusted> {
    const { script } = options;
    const run = await this.#solo.run(script, this.#suspects.isConvicted(script.owner), async (cell) =>
      cell.run(options, { script, sentAt: performance.now(), cpuShareMs: 0, fault: undefined }),
    );
    if (run === undefined) return trusted;
    const { result, usedCpuMs } = run;
    if (usedCpuMs > this.#settings.stallCpuMs / 2) this.#suspects.isHeavy(script.owner);
    else this.#suspects.behaved(script.owner);
    if (!this.#suspects.has(script.owner)) this.#solo.free(script.owner);
    return result;
  }

  /** Where the script is loaded already, if there is room; else the shared cell with the fewest requests in it. Waits while there is none. */
  async #pick({ id }: CellScript): Promise<Cell> {
    let best: Cell | undefined;
    for (const cell of this.#shared) {
      if (cell.scripts.has(id) && cell.visits.size < sharedBusy) return cell;
      if (best === undefined || cell.visits.size < best.visits.size) best = cell;
    }
    if (best !== undefined && best.visits.size < this.#settings.inFlightMax) return best;
    if (best !== undefined) throw new CellError("overloaded", "Too many requests are being handled.");
    const cell = await new Promise<Cell | undefined>((resolve) => {
      if (this.#isClosed) resolve(undefined);
      else this.#waitingShared.push(resolve);
    });
    if (cell === undefined) throw unavailable();
    return cell;
  }

  async #wantSolo(signal: AbortSignal): Promise<Cell | undefined> {
    if (this.#isClosed) throw unavailable();
    return new Promise<Cell | undefined>((resolve, reject) => {
      const waiter = { resolve, reject };
      signal.addEventListener("abort", () => {
        const index = this.#waitingSolo.indexOf(waiter);
        if (index < 0) return;
        this.#waitingSolo.splice(index, 1);
        this.#happened({ type: "soloUnwanted", now: performance.now() });
        resolve(undefined);
      });
      this.#waitingSolo.push(waiter);
      this.#happened({ type: "soloWanted", now: performance.now() });
    });
  }

  #retire(cell: Cell): void {
    this.#happened({ type: "retire", id: cell.id, now: performance.now() });
  }

  /** One look at every cell that serves. */
  #look(): void {
    const now = performance.now();
    this.#looks++;
    for (const [cell, { watch, budget }] of this.#watches) {
      // What an answered request left running is seen a little later.
      if (cell.visits.size === 0 && this.#looks % idleLooks !== 0) continue;
      const fault = watch.look(now, this.#settings);
      if (fault !== undefined) this.#fault(cell, fault);
      else if (this.#draining.has(cell)) this.#endDrained(cell, now);
      else this.#fit(cell, budget.look(watch.rssBytes));
    }
    if (this.#lifecycle.bootAfter > 0) this.#happened({ type: "tick", now });
  }

  #fit(cell: Cell, relief: Relief | undefined): void {
    if (relief === "replace") this.#happened({ type: "worn", id: cell.id, now: performance.now() });
    if (relief === undefined || this.#unloading.has(cell)) return;
    this.#unloading.add(cell);
    cell
      .unloadSome()
      .catch(() => {}) // it died, which is seen elsewhere
      .finally(() => this.#unloading.delete(cell));
  }

  /** When those in a cell have been answered, what they have left running has a while. */
  #endDrained(cell: Cell, now: number): void {
    const { lingerMs, drainMsMax } = this.#settings;
    const isDone = cell.visits.size === 0 && now - cell.lastActivityAt > lingerMs;
    if (isDone || now - this.#draining.get(cell)! > drainMsMax) this.#retire(cell);
  }

  #fault(cell: Cell, kind: FaultKind): void {
    const suspects = cell.die(kind);
    for (const { script } of suspects) this.#suspects.suspect(script.owner);
    this.#logger.warn(
      {
        cell: cell.id,
        fault: kind,
        requests: cell.visits.size,
        suspects: suspects.map((visit) => visit.script.owner),
      },
      "a shared cell had to be ended",
    );
    this.#gone(cell);
  }

  #gone(cell: Cell): void {
    if (!this.#cells.has(cell.id)) return;
    this.#forget(cell);
    this.#happened({ type: "exited", id: cell.id, now: performance.now() });
  }

  #forget(cell: Cell): void {
    this.#cells.delete(cell.id);
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
    if (cell.isDead) this.#gone(cell);
    else this.#fault(cell, causeOf(exit));
  }

  #happened(happening: Happening): void {
    const { state, effects } = step(this.#lifecycle, happening, this.#settings);
    this.#lifecycle = state;
    for (const effect of effects) this.#carryOut(effect);
  }

  #carryOut(effect: Effect): void {
    const cell = this.#cells.get(effect.id);
    switch (effect.do) {
      case "boot":
        void this.#boot(effect.id);
        break;
      case "share":
        this.#shared.push(cell!);
        this.#watches.set(cell!, {
          watch: new SharedWatch(cell!, performance.now()),
          budget: new MemoryBudget(this.#settings.cellBytesMax),
        });
        for (const resolve of this.#waitingShared.splice(0)) resolve(cell);
        break;
      case "giveSolo":
        this.#waitingSolo.shift()?.resolve(cell);
        break;
      case "drain":
        this.#logger.info({ cell: effect.id, requests: cell!.visits.size }, "a cell is replaced");
        this.#unshare(cell!);
        this.#draining.set(cell!, performance.now());
        break;
      case "end":
        if (cell === undefined) break;
        this.#forget(cell);
        cell.close();
        break;
    }
  }

  async #boot(id: number): Promise<void> {
    try {
      // Loaded with the first boot: a start that runs no script is a tenth cheaper.
      const { Cell } = await import("./cell.ts");
      const cell = await Cell.boot(id, this.#settings, (line) => this.#logger.debug({ cell: id }, line));
      if (this.#isClosed) {
        cell.close();
        return;
      }
      this.#cells.set(id, cell);
      void this.#waitForEnd(cell);
      this.#happened({ type: "booted", id, now: performance.now() });
    } catch (error) {
      this.#logger.error({ err: error }, "a cell could not be started");
      this.#happened({ type: "bootFailed", id, now: performance.now() });
      // Whoever waits is told rather than left hanging, once it is not a single failure.
      if (this.#lifecycle.failures >= failuresToRefuse) this.#refuseWaiting();
    }
  }

  #refuseWaiting(): void {
    for (const resolve of this.#waitingShared.splice(0)) resolve(undefined);
    for (const { reject } of this.#waitingSolo.splice(0)) {
      this.#happened({ type: "soloUnwanted", now: performance.now() });
      reject(unavailable());
    }
  }
}

const hasAnswered = (answer: RunOptions["answer"]): boolean =>
  "socket" in answer ? answer.socket.bytesWritten > 0 : answer.response.headersSent;

/** The owner has been cleared while its request waited to run alone. */
const trusted = Symbol("trusted");

const unavailable = (): CellError =>
  new CellError("unavailable", "Scripts cannot be run now: no cell could be started.");

const failuresToRefuse = 3;
const messages: Record<Exclude<FaultKind, "killed">, string> = {
  cpu: "The script used more CPU time than it may.",
  memory: "The script used more memory than it may.",
  crashed: "The process that ran the script ended.",
};

/** What ended a process that was not told to end. Behind its keeper a signal is seen as 128 and its number. */
function causeOf({ code, signal, lastWords }: Exit): FaultKind {
  if (signal === "SIGKILL" || signal === "SIGTERM" || code === 137 || code === 143) return "killed";
  return /heap limit|out of memory/i.test(lastWords) ? "memory" : "crashed";
}

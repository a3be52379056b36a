import type { Logger } from "pino";
import type { Cell, Visit } from "../cells/cell.ts";
import { CellError, CellFault, type FaultKind } from "../cells/errors.ts";
import type { Exit } from "../cells/process.ts";
import type { CellSettings } from "../cells/settings.ts";
import { SoloCells } from "../cells/solo.ts";
import { Suspects } from "../cells/suspects.ts";
import { SharedWatch } from "../cells/watch.ts";
import type { PreparedScript } from "../runtime/runtime.ts";
import type { RunTrace } from "../tail/run-trace.ts";
import type { CellListener, Cells, Code, Manner } from "./cells.ts";
import { Lane } from "./lane.ts";
import type { Ending, Signal, StartMessage } from "./worker/messages.ts";

/** Code that is ready to be given to a cell. */
export interface Prepared extends Pick<PreparedScript, "script" | "hooks" | "trace"> {
  /** Whether it has not been deleted since. */
  isThere(): boolean;
}

export interface LaneCellsOptions {
  settings: CellSettings;
  /** Undefined when the code is gone, with its script or its version. */
  prepare(code: Code): Promise<Prepared | undefined>;
  logger: Logger;
  /** Instances that sleep need no cell: one in which nothing has run for so long and that has grown by so much is ended. */
  idle?: { ms: number; growthBytesMax: number };
}

/** A segment that runs, is about to, or stands by. */
interface Running {
  segment: number;
  code: Code;
  /** Absent while it stands by. */
  start: StartMessage | undefined;
  manner: Manner;
  /** Where it runs; absent while it waits for a cell. */
  place:
    | { lane: Lane; visit: Visit; token: string; trace: RunTrace | undefined; prepared: Prepared }
    | undefined;
  /** Ends its stay in a solo cell. */
  leave: (error?: Error) => void;
  isOver: boolean;
}

interface Shared {
  lane: Lane;
  watch: SharedWatch;
  /** What it took when it was new. */
  freshBytes: number;
  /** When it was found idle, and looked at, last. */
  idleLookAt: number;
}

const lookEveryMs = 10;
const idleLookMs = 1000;
const idleDefaults = { ms: 10_000, growthBytesMax: 64 * 1024 * 1024 };
const retryMs = 1000;
const exitGraceMs = 1000;

/**
 * Runs segments of workflows in cells of their own: shared ones with a lane each, so that a request never waits for a workflow,
 * and solo ones for what has ended a shared one before. A cell is booted when there is something to run.
 */
export class LaneCells implements Cells {
  listener!: CellListener;
  readonly #options: LaneCellsOptions;
  readonly #suspects: Suspects;
  readonly #solo: SoloCells;
  readonly #running = new Map<number, Running>();
  readonly #shared: Shared[] = [];
  readonly #booting = new Set<Promise<Shared>>();
  readonly #lanes = new Map<Cell, Promise<Lane>>();
  /** Solo cells, and those who wait for one: there are at most so many. */
  readonly #alone = new Set<Cell>();
  readonly #waiting: (() => void)[] = [];
  #soloBooting = 0;
  #timer: NodeJS.Timeout | undefined;
  #cells = 0;
  #isClosed = false;

  constructor(options: LaneCellsOptions) {
    this.#options = options;
    this.#suspects = new Suspects(options.settings.soloRunsToTrust);
    this.#solo = new SoloCells(
      {
        want: async () => this.#bootSolo(),
        retire: (cell) => this.#retire(cell),
        convict: (owner) => this.#suspects.convict(owner),
      },
      options.settings,
    );
  }

  /** Pids of the cells that are running. */
  get pids(): number[] {
    return [...this.#lanes.keys()].map((cell) => cell.process.pid);
  }

  /** Segments that run, or are about to. */
  get runningCount(): number {
    return [...this.#running.values()].filter(({ start }) => start !== undefined).length;
  }
  get standbyCount(): number {
    return this.#running.size - this.runningCount;
  }

  run(segment: number, code: Code, start: StartMessage, manner: Manner): void {
    this.#add(segment, code, start, manner);
  }

  standBy(segment: number, code: Code): void {
    this.#add(segment, code, undefined, "shared");
  }

  standsBy(segment: number): boolean {
    const running = this.#running.get(segment);
    return running !== undefined && running.start === undefined;
  }

  #add(segment: number, code: Code, start: StartMessage | undefined, manner: Manner): void {
    const running: Running = {
      segment,
      code,
      start,
      manner,
      place: undefined,
      leave: () => {},
      isOver: false,
    };
    this.#running.set(segment, running);
    this.#begin(running).catch((error: unknown) => this.#failed(running, error));
  }

  begin(segment: number, start: StartMessage): boolean {
    const running = this.#running.get(segment);
    if (running === undefined) return false;
    const { place, code } = running;
    if (place !== undefined && !this.#mayStandBy(place.prepared, code)) {
      place.lane.signal(segment, "abort");
      return false;
    }
    running.start = start;
    if (place === undefined) return true;
    place.visit.sentAt = performance.now();
    place.lane.cell.visits.add(place.visit);
    place.lane.begin(segment, JSON.stringify(start));
    return true;
  }

  /** What has to run alone, or is watched, is brought to where it runs when its instance is known. */
  #mayStandBy(prepared: Prepared, code: Code): boolean {
    return (
      prepared.isThere() &&
      !this.#suspects.has(prepared.script.owner) &&
      traceOf(prepared, code) === undefined
    );
  }

  answer(segment: number, call: number, answer: string): void {
    this.#running.get(segment)?.place?.lane.answer(segment, call, answer);
  }

  signal(segment: number, signal: Signal): void {
    const running = this.#running.get(segment);
    running?.place?.lane.signal(segment, signal);
    // Nobody hears what an aborted segment still says.
    if (running !== undefined && signal === "abort" && running.place === undefined) this.#ended(segment);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#solo.close();
    this.#running.clear();
    for (const go of this.#waiting.splice(0)) go();
    await Promise.allSettled(this.#booting);
    const cells = [...this.#lanes.keys()];
    for (const cell of cells) this.#retire(cell);
    await Promise.all(cells.map(async (cell) => cell.process.exited));
  }

  async #begin(running: Running): Promise<void> {
    const { segment, code } = running;
    const prepared = await this.#options.prepare(code);
    if (prepared === undefined) {
      this.#ended(segment);
      const message = `The code of this instance is gone: version ${code.scriptVersion} of the script "${code.scriptName}"`;
      this.listener.ended(segment, {
        end: "throw",
        error: { name: "WorkflowInternalError", message },
        unasked: [],
      });
      return;
    }
    if (running.start === undefined && !this.#mayStandBy(prepared, code)) {
      this.#ended(segment);
      return;
    }
    if (running.manner === "alone" || this.#suspects.has(prepared.script.owner)) {
      await this.#runAlone(running, prepared);
      return;
    }
    const shared = this.#leastBusy() ?? (await this.#bootShared());
    if (!running.isOver) this.#enter(running, prepared, shared.lane);
  }

  async #runAlone(running: Running, prepared: Prepared): Promise<void> {
    const run = await this.#solo.run(prepared.script, true, async (cell) => {
      if (running.isOver) return;
      const lane = await this.#laneOf(cell);
      const left = new Promise<void>((resolve, reject) => {
        running.leave = (error) => (error === undefined ? resolve() : reject(error));
      });
      this.#enter(running, prepared, lane);
      await left;
    });
    if (run === undefined) return;
    const { usedCpuMs } = run;
    if (usedCpuMs > this.#options.settings.stallCpuMs / 2) this.#suspects.isHeavy(prepared.script.owner);
    else this.#suspects.behaved(prepared.script.owner);
  }

  #enter(running: Running, prepared: Prepared, lane: Lane): void {
    const { script } = prepared;
    const { className } = running.code;
    const visit: Visit = { script, sentAt: performance.now(), cpuShareMs: 0, fault: undefined };
    const trace = running.start && traceOf(prepared, running.code);
    const token = lane.cell.enter(script, prepared.hooks(trace));
    running.place = { lane, visit, token, trace, prepared };
    if (running.start !== undefined) lane.cell.visits.add(visit);
    const start = running.start && JSON.stringify({ ...running.start, isTraced: trace !== undefined });
    lane.run(running.segment, script.id, token, className, start ?? "");
  }

  #ended(segment: number, ending?: Ending): void {
    const running = this.#running.get(segment);
    if (running === undefined) return;
    this.#running.delete(segment);
    running.isOver = true;
    if (running.place !== undefined) {
      const { lane, visit, token, trace } = running.place;
      // One that only stood by has not run.
      if (running.start !== undefined) lane.lastRunAt = performance.now();
      lane.cell.leave(token, visit);
      tell(trace, ending, visit.fault);
    }
    running.leave();
  }

  /** It could not be run at all, or its solo cell has died under it. */
  #failed(running: Running, error: unknown): void {
    if (running.isOver || this.#isClosed) return;
    if (running.start === undefined) {
      this.#ended(running.segment);
      return;
    }
    if (error instanceof CellFault) {
      this.#lost(running, true);
      return;
    }
    if (!(error instanceof CellError))
      this.#options.logger.error({ err: error }, "a workflow could not be run");
    const timer = setTimeout(() => {
      if (running.isOver || this.#isClosed) return;
      this.#begin(running).catch((again: unknown) => this.#failed(running, again));
    }, retryMs);
    timer.unref();
  }

  #lost(running: Running, isSuspect: boolean): void {
    this.#ended(running.segment);
    this.listener.lost(running.segment, isSuspect);
  }

  #leastBusy(): Shared | undefined {
    let best: Shared | undefined;
    for (const each of this.#shared)
      if (best === undefined || each.lane.cell.visits.size < best.lane.cell.visits.size) best = each;
    const wanted = this.#options.settings.shared - this.#shared.length - this.#booting.size;
    // Another cell is worth its memory only when those that are there have something to do.
    if (best !== undefined && best.lane.cell.visits.size > 0 && wanted > 0)
      this.#bootShared().catch(() => {});
    return best;
  }

  async #bootShared(): Promise<Shared> {
    const [already] = this.#booting;
    if (already !== undefined) return already;
    const booting = this.#makeShared().finally(() => this.#booting.delete(booting));
    this.#booting.add(booting);
    return booting;
  }

  async #makeShared(): Promise<Shared> {
    const cell = await this.#boot();
    const lane = await this.#laneOf(cell);
    const watch = new SharedWatch(cell, performance.now());
    const shared = { lane, watch, freshBytes: cell.process.rssBytes(), idleLookAt: 0 };
    this.#shared.push(shared);
    this.#timer ??= setInterval(() => this.#look(), lookEveryMs).unref();
    return shared;
  }

  #look(): void {
    const now = performance.now();
    const { ms } = this.#options.idle ?? idleDefaults;
    for (const shared of [...this.#shared]) {
      const { lane, watch } = shared;
      if (lane.cell.visits.size === 0) {
        if (now - lane.lastRunAt > ms && now - shared.idleLookAt > idleLookMs) this.#lookAtIdle(shared, now);
        continue;
      }
      // What counts is what the scripts may take, not what makes one isolate end.
      const settings = { ...this.#options.settings, memoryBytesMax: Infinity };
      const fault = watch.look(now, settings);
      if (fault !== undefined) this.#fault(lane.cell, fault);
    }
  }

  #lookAtIdle(shared: Shared, now: number): void {
    const { growthBytesMax } = this.#options.idle ?? idleDefaults;
    const { cell } = shared.lane;
    shared.idleLookAt = now;
    if (cell.process.rssBytes() > shared.freshBytes + growthBytesMax) this.#retire(cell);
  }

  async #bootSolo(): Promise<Cell> {
    const isFull = (): boolean => this.#alone.size + this.#soloBooting >= this.#options.settings.soloMax;
    while (isFull() && !this.#isClosed) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#soloBooting++;
    try {
      const cell = await this.#boot();
      this.#alone.add(cell);
      return cell;
    } finally {
      this.#soloBooting--;
    }
  }

  async #boot(): Promise<Cell> {
    if (this.#isClosed) throw new CellError("unavailable", "No workflow runs any more");
    const id = ++this.#cells;
    const { settings, logger } = this.#options;
    const { Cell } = await import("../cells/cell.ts");
    const cell = await Cell.boot(id, settings, (line) => logger.debug({ cell: `workflows ${id}` }, line));
    void cell.process.exited.then((exit) => this.#fault(cell, causeOf(exit)));
    return cell;
  }

  async #laneOf(cell: Cell): Promise<Lane> {
    let lane = this.#lanes.get(cell);
    if (lane === undefined) {
      lane = Lane.open(
        cell,
        () => this.listener,
        (segment, ending) => this.#ended(segment, ending),
        // Mostly the process has died, and its exit says of what a moment later.
        () => void setTimeout(() => this.#fault(cell, "killed"), exitGraceMs).unref(),
      );
      this.#lanes.set(cell, lane);
    }
    return lane;
  }

  /** Whatever ran in the cell goes on elsewhere; what may have been the cause goes on alone. */
  #fault(cell: Cell, kind: FaultKind): void {
    const gone = [...this.#running.values()].filter(({ place }) => place?.lane.cell === cell);
    const suspects = cell.die(kind);
    this.#forget(cell);
    for (const { script } of suspects) this.#suspects.suspect(script.owner);
    const segments = gone.filter(({ start }) => start !== undefined).length;
    if (segments > 0 && !this.#isClosed)
      this.#options.logger.warn({ cell: cell.id, fault: kind, segments }, "a cell of workflows ended");
    for (const running of gone) {
      const isSuspect = running.place?.visit.fault?.isSuspect ?? false;
      running.leave(new CellFault(kind, isSuspect));
      this.#lost(running, isSuspect);
    }
  }

  #retire(cell: Cell): void {
    this.#forget(cell);
    cell.close();
  }

  #forget(cell: Cell): void {
    const index = this.#shared.findIndex(({ lane }) => lane.cell === cell);
    if (index >= 0) this.#shared.splice(index, 1);
    if (this.#alone.delete(cell)) this.#waiting.shift()?.();
    const lane = this.#lanes.get(cell);
    this.#lanes.delete(cell);
    void lane?.then((open) => open.close()).catch(() => {});
  }
}

const traceOf = (prepared: Prepared, { className }: Code): RunTrace | undefined =>
  prepared.trace(className, { rpcMethod: "run" });

/** Tells those who watch how a segment ended; without an ending its cell died. */
function tell(trace: RunTrace | undefined, ending: Ending | undefined, fault: CellFault | undefined): void {
  if (ending?.end === "throw") trace?.end("exception", ending.error, false);
  else if (ending !== undefined) trace?.end("ok", undefined, false);
  else trace?.end(fault?.isSuspect === true ? outcomes[fault.kind] : "canceled", undefined, true);
}
const outcomes = {
  cpu: "exceededCpu",
  memory: "exceededMemory",
  crashed: "unknown",
  killed: "unknown",
} as const;

/** What ended a process that was not told to end. */
function causeOf({ code, signal, lastWords }: Exit): FaultKind {
  if (signal === "SIGKILL" || signal === "SIGTERM" || code === 137 || code === 143) return "killed";
  return /heap limit|out of memory/i.test(lastWords) ? "memory" : "crashed";
}

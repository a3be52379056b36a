import type { Logger } from "pino";
import type { RpcTunnels } from "../../../sandbox/gateway/rpc-tunnels.ts";
import type { Cell } from "../../../sandbox/cell.ts";
import { CellError, CellFault, type FaultKind } from "../../../sandbox/errors.ts";
import { causeOf } from "../../../sandbox/process/exit-cause.ts";
import type { CellSettings } from "../../../sandbox/settings.ts";
import { DedicatedCells } from "../../../sandbox/dedicated.ts";
import { Quarantine } from "../../../sandbox/limits/quarantine.ts";
import { newCellRun } from "../../../sandbox/gateway/cell-run.ts";
import { SharedWatch } from "../../../sandbox/limits/watch.ts";
import type {
  EndedAttempt,
  InvocationListener,
  InvocationRunner,
  Placement,
  WorkflowCode,
} from "./invocation-runner.ts";
import {
  startText,
  waitingInvocation,
  type Prepared,
  type RunningInvocation,
  type Shared,
} from "./running-invocation.ts";
import type { Tracer } from "../../../platform/tracing/spans/tracer.ts";
import { WorkflowStream } from "./workflow-stream.ts";
import { requestsWhile } from "./request-guard.ts";
import { endTrace, traceOf } from "./invocation-traces.ts";
import type { Ending, Signal, StartMessage } from "../worker/messages.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";

export type { Prepared };

export interface WorkflowCellsOptions {
  settings: CellSettings;
  /** Resolves with undefined when the script or its version has been deleted. */
  prepare(code: WorkflowCode): Promise<Prepared | undefined>;
  logger: Logger;
  /** Lead to the cells of objects, for method calls of objects. */
  tunnels?: RpcTunnels;
  /** Undefined without traces. */
  tracer?: Tracer | undefined;
  /**
   * Sleeping instances need no cell. A cell idle for `ms` that has grown by more than `growthBytesMax` is
   * ended.
   */
  idle?: { ms: number; growthBytesMax: number };
}

const lookEveryMs = 10;
const idleLookMs = 1000;
const idleDefaults = { ms: 10_000, growthBytesMax: 64 * 1024 * 1024 };
const retryMs = 1000;
const exitGraceMs = 1000;
const abortGraceMs = 10_000;

/**
 * Runs invocations in cells of their own, so that requests never wait for workflows. Shared cells have one
 * stream each; an instance that ended a shared cell runs in a dedicated cell. Cells boot on demand.
 */
export class WorkflowCells implements InvocationRunner {
  listener!: InvocationListener;
  readonly #options: WorkflowCellsOptions;
  readonly #quarantine: Quarantine;
  readonly #dedicated: DedicatedCells;
  readonly #running = new Map<number, RunningInvocation>();
  readonly #shared: Shared[] = [];
  readonly #booting = new Set<Promise<Shared>>();
  readonly #streams = new Map<Cell, Promise<WorkflowStream>>();
  /** The dedicated cells. Their number is limited. */
  readonly #alone = new Set<Cell>();
  readonly #waiting: (() => void)[] = [];
  #dedicatedBooting = 0;
  #timer: NodeJS.Timeout | undefined;
  #cells = 0;
  #isClosed = false;

  constructor(options: WorkflowCellsOptions) {
    this.#options = options;
    this.#quarantine = new Quarantine(options.settings.dedicatedRunsToTrust);
    this.#dedicated = new DedicatedCells(
      {
        want: async () => this.#bootDedicated(),
        retire: (cell) => this.#retire(cell),
        recordFault: (owner) => this.#quarantine.recordFault(owner),
      },
      options.settings,
    );
  }

  /** Process ids of the running cells. */
  get pids(): number[] {
    return [...this.#streams.keys()].map((cell) => cell.process.pid);
  }

  /** Number of invocations that run or are about to. */
  get runningCount(): number {
    return [...this.#running.values()].filter(({ start }) => start !== undefined).length;
  }
  get standbyCount(): number {
    return this.#running.size - this.runningCount;
  }

  run(invocation: number, code: WorkflowCode, start: StartMessage, manner: Placement): void {
    this.#add(invocation, code, start, manner);
  }

  standBy(invocation: number, code: WorkflowCode): void {
    this.#add(invocation, code, undefined, "shared");
  }

  standsBy(invocation: number): boolean {
    const running = this.#running.get(invocation);
    return running !== undefined && running.start === undefined;
  }

  #add(invocation: number, code: WorkflowCode, start: StartMessage | undefined, manner: Placement): void {
    const running = waitingInvocation(invocation, code, start, manner);
    this.#running.set(invocation, running);
    unawaited(this.#begin(running).catch((error: unknown) => this.#failed(running, error)));
  }

  begin(invocation: number, start: StartMessage): boolean {
    const running = this.#running.get(invocation);
    if (running === undefined) return false;
    const { placement, code } = running;
    if (placement !== undefined && !this.#mayStandBy(placement.prepared, code)) {
      placement.stream.signal(invocation, "abort");
      return false;
    }
    running.start = placement === undefined ? start : "sent";
    if (placement === undefined) return true;
    running.traced.begin(this.#options.tracer, code, start);
    placement.cellRun.sentAt = performance.now();
    placement.stream.cell.runs.add(placement.cellRun);
    placement.stream.begin(invocation, startText(start, false));
    return true;
  }

  /** Instances that need a dedicated cell or a trace cannot use a standby invocation. */
  #mayStandBy(prepared: Prepared, code: WorkflowCode): boolean {
    return (
      prepared.isThere() &&
      !this.#quarantine.has(prepared.script.owner) &&
      traceOf(prepared, code) === undefined
    );
  }

  attempted(invocation: number, attempt: EndedAttempt): void {
    this.#running.get(invocation)?.traced.attempted(attempt);
  }

  answer(invocation: number, call: number, answer: string): void {
    this.#running.get(invocation)?.placement?.stream.answer(invocation, call, answer);
  }

  signal(invocation: number, signal: Signal): void {
    const running = this.#running.get(invocation);
    running?.placement?.stream.signal(invocation, signal);
    // Messages of an aborted invocation are dropped.
    if (running === undefined || signal !== "abort") return;
    running.isAborted = true;
    if (running.placement === undefined) this.#ended(invocation);
    else setTimeout(() => this.#abandon(running), abortGraceMs).unref();
  }

  /** For the test kit: the process of an invocation. */
  processOf(invocation: number): Cell["process"] | undefined {
    return this.#running.get(invocation)?.placement?.stream.cell.process;
  }

  /** The isolate may be hostile and never end the invocation, so it is dropped here. */
  #abandon(running: RunningInvocation): void {
    if (running.isOver) return;
    running.placement?.stream.forget(running.invocation);
    this.#ended(running.invocation);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#dedicated.close();
    this.#running.clear();
    for (const go of this.#waiting.splice(0)) go();
    await Promise.allSettled(this.#booting);
    const cells = [...this.#streams.keys()];
    for (const cell of cells) this.#retire(cell);
    await Promise.all(cells.map(async (cell) => cell.process.exited));
  }

  async #begin(running: RunningInvocation): Promise<void> {
    const { invocation, code } = running;
    const prepared = await this.#options.prepare(code);
    if (prepared === undefined) {
      this.#ended(invocation);
      const message = `The code of this instance has been deleted: version ${code.scriptVersion} of the script "${code.scriptName}"`;
      this.listener.ended(invocation, {
        end: "throw",
        error: { name: "WorkflowInternalError", message },
        unasked: [],
      });
      return;
    }
    if (running.start === undefined && !this.#mayStandBy(prepared, code)) {
      this.#ended(invocation);
      return;
    }
    if (running.manner === "alone" || this.#quarantine.has(prepared.script.owner)) {
      await this.#runAlone(running, prepared);
      return;
    }
    const shared = this.#leastBusy() ?? (await this.#bootShared());
    if (!running.isOver) this.#enter(running, prepared, shared.stream);
  }

  async #runAlone(running: RunningInvocation, prepared: Prepared): Promise<void> {
    const run = await this.#dedicated.run(prepared.script, { hasFaulted: true }, async (cell) => {
      if (running.isOver) return;
      const stream = await this.#streamOf(cell);
      const left = new Promise<void>((resolve, reject) => {
        running.leave = (error) => (error === undefined ? resolve() : reject(error));
      });
      this.#enter(running, prepared, stream);
      await left;
    });
    if (run === undefined) return;
    const { usedCpuMs } = run;
    this.#quarantine.recordRun(prepared.script.owner, usedCpuMs, this.#options.settings.stallCpuMs);
  }

  #enter(running: RunningInvocation, prepared: Prepared, stream: WorkflowStream): void {
    const { script } = prepared;
    const { className } = running.code;
    const cellRun = newCellRun(script);
    const start = running.start === "sent" ? undefined : running.start;
    const trace = start && traceOf(prepared, running.code);
    if (start !== undefined) running.traced.begin(this.#options.tracer, running.code, start);
    const text = start === undefined ? "" : startText(start, trace !== undefined);
    const token = stream.cell.enter(
      script,
      requestsWhile(() => !running.isAborted, prepared.hooks(trace, running.traced)),
    );
    running.placement = { stream, cellRun, token, trace, prepared };
    if (start !== undefined) {
      stream.cell.runs.add(cellRun);
      running.start = "sent";
    }
    stream.run(running.invocation, script.id, token, className, text);
  }

  #ended(invocation: number, ending?: Ending): void {
    const running = this.#running.get(invocation);
    if (running === undefined) return;
    this.#running.delete(invocation);
    running.isOver = true;
    if (running.placement !== undefined) {
      const { stream, cellRun, token, trace } = running.placement;
      // A standby invocation has not run.
      if (running.start !== undefined) stream.lastRunAt = performance.now();
      stream.cell.leave(token, cellRun);
      endTrace(trace, ending, cellRun.fault);
      running.traced.end(ending);
    }
    running.leave();
  }

  /** Called when an invocation could not start, or its dedicated cell died. */
  #failed(running: RunningInvocation, error: unknown): void {
    if (running.isOver || this.#isClosed) return;
    if (running.start === undefined) {
      this.#ended(running.invocation);
      return;
    }
    if (error instanceof CellFault) {
      this.#lost(running, true);
      return;
    }
    if (!(error instanceof CellError))
      this.#options.logger.error({ err: error }, "an invocation of a workflow could not start");
    const timer = setTimeout(() => {
      if (running.isOver || this.#isClosed) return;
      unawaited(this.#begin(running).catch((again: unknown) => this.#failed(running, again)));
    }, retryMs);
    timer.unref();
  }

  #lost(running: RunningInvocation, mayBeCulprit: boolean): void {
    this.#ended(running.invocation);
    this.listener.lost(running.invocation, mayBeCulprit);
  }

  #leastBusy(): Shared | undefined {
    let best: Shared | undefined;
    for (const each of this.#shared)
      if (best === undefined || each.stream.cell.runs.size < best.stream.cell.runs.size) best = each;
    const wanted = this.#options.settings.shared - this.#shared.length - this.#booting.size;
    // Another cell is worth its memory only when the existing cells are busy.
    if (best !== undefined && best.stream.cell.runs.size > 0 && wanted > 0)
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
    const stream = await this.#streamOf(cell);
    const watch = new SharedWatch(cell, performance.now());
    const shared = { stream, watch, freshBytes: cell.process.rssBytes(), idleLookAt: 0 };
    this.#shared.push(shared);
    this.#timer ??= setInterval(() => this.#look(), lookEveryMs).unref();
    return shared;
  }

  #look(): void {
    const now = performance.now();
    const { ms } = this.#options.idle ?? idleDefaults;
    for (const shared of [...this.#shared]) {
      const { stream, watch } = shared;
      if (stream.cell.runs.size === 0) {
        if (now - stream.lastRunAt > ms && now - shared.idleLookAt > idleLookMs)
          this.#lookAtIdle(shared, now);
        continue;
      }
      // The memory limit of scripts applies, not the limit of a single isolate.
      const settings = { ...this.#options.settings, memoryBytesMax: Infinity };
      const fault = watch.check(now, settings);
      if (fault !== undefined) this.#fault(stream.cell, fault);
    }
  }

  #lookAtIdle(shared: Shared, now: number): void {
    const { growthBytesMax } = this.#options.idle ?? idleDefaults;
    const { cell } = shared.stream;
    shared.idleLookAt = now;
    if (cell.process.rssBytes() > shared.freshBytes + growthBytesMax) this.#retire(cell);
  }

  async #bootDedicated(): Promise<Cell> {
    const isFull = (): boolean =>
      this.#alone.size + this.#dedicatedBooting >= this.#options.settings.dedicatedMax;
    while (isFull() && !this.#isClosed) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#dedicatedBooting++;
    try {
      const cell = await this.#boot();
      this.#alone.add(cell);
      return cell;
    } finally {
      this.#dedicatedBooting--;
    }
  }

  async #boot(): Promise<Cell> {
    if (this.#isClosed) throw new CellError("unavailable", "Workflows have been stopped");
    const id = ++this.#cells;
    const { settings, logger, tunnels } = this.#options;
    const { Cell } = await import("../../../sandbox/cell.ts");
    const onMessage = (line: string): void => logger.debug({ cell: `workflows ${id}` }, line);
    const cell = await Cell.boot(id, settings, onMessage, { tunnels });
    unawaited(cell.process.exited.then((exit) => this.#fault(cell, causeOf(exit))));
    return cell;
  }

  async #streamOf(cell: Cell): Promise<WorkflowStream> {
    let stream = this.#streams.get(cell);
    if (stream === undefined) {
      stream = WorkflowStream.open(cell, () => this.listener, {
        ended: (invocation, ending) => this.#ended(invocation, ending),
        lost: (isBroken) => {
          if (isBroken) this.#fault(cell, "crashed");
          // Usually the process has died, and its exit status arrives a moment later.
          else setTimeout(() => this.#fault(cell, "killed"), exitGraceMs).unref();
        },
        fault: (error) =>
          this.#options.logger.error({ err: error }, "a message of a workflow could not be handled"),
      });
      this.#streams.set(cell, stream);
    }
    return stream;
  }

  /**
   * Moves the invocations of a dead cell to other cells. Those that may be the cause run in dedicated cells.
   */
  #fault(cell: Cell, kind: FaultKind): void {
    const gone = [...this.#running.values()].filter(({ placement }) => placement?.stream.cell === cell);
    const possibleCulprits = cell.die(kind);
    this.#forget(cell);
    for (const { script } of possibleCulprits) this.#quarantine.add(script.owner);
    const invocations = gone.filter(({ start }) => start !== undefined).length;
    if (invocations > 0 && !this.#isClosed)
      this.#options.logger.warn({ cell: cell.id, fault: kind, invocations }, "a cell of workflows ended");
    for (const running of gone) {
      const mayBeCulprit = running.placement?.cellRun.fault?.mayBeCulprit ?? false;
      running.leave(new CellFault(kind, mayBeCulprit));
      this.#lost(running, mayBeCulprit);
    }
  }

  #retire(cell: Cell): void {
    this.#forget(cell);
    cell.close();
  }

  #forget(cell: Cell): void {
    const index = this.#shared.findIndex(({ stream }) => stream.cell === cell);
    if (index >= 0) this.#shared.splice(index, 1);
    if (this.#alone.delete(cell)) this.#waiting.shift()?.();
    const stream = this.#streams.get(cell);
    this.#streams.delete(cell);
    stream?.then((open) => open.close()).catch(() => {});
  }
}

import type { IncomingMessage, ServerResponse } from "node:http";
import { readBytes } from "../../control/api/body.ts";
import type { RunOptions } from "../../sandbox/cell.ts";
import { CellError, ObjectRefusal, type CellErrorKind } from "../../sandbox/errors.ts";
import type { Thrown } from "../../sandbox/gateway/exchange.ts";
import type { Caller } from "../binding.ts";
import { cellErrorMessages } from "../cell-error-messages.ts";
import { nothing, readCollected, type Collected } from "./collected.ts";
import type { Outcome, TailEvent, TailException } from "./event.ts";
import type { Tails, Watched } from "./tails.ts";
import { clock } from "../../platform/timers/clock.ts";

const collectedBytesMax = 2 * 1024 * 1024;
/** Time to wait for logs of work that a script left running. */
const collectMs = 30_000;

/** Maps stacks for the author of the script. */
export type ShowStacks = (stacks: readonly string[]) => Promise<readonly string[]>;
/** Maximum number of stacks of one run. */
const stacksMax = 100;

export type RunStart = Omit<
  TailEvent,
  "outcome" | "logs" | "exceptions" | "truncated" | "wallTime" | "diagnosticsChannelEvents"
>;

/** A watched run: reported when it has ended and its logs have arrived. */
export class RunTrace {
  readonly #watched: Watched;
  readonly #shown: ShowStacks;
  readonly #start: RunStart;
  readonly #startedAt = performance.now();
  #collected: Collected | undefined;
  #ended: { outcome: Outcome; exceptions: TailException[]; wallTime: number } | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isDelivered = false;
  #isCollecting = false;

  constructor(watched: Watched, shown: ShowStacks, start: RunStart) {
    this.#watched = watched;
    this.#shown = shown;
    this.#start = start;
  }

  /** Runs the work, and ends the trace with it. */
  async follow(
    answer: RunOptions["answer"],
    run: (answer: RunOptions["answer"]) => Promise<void>,
  ): Promise<void> {
    try {
      await run({ ...answer, headers: (raw, status) => answer.headers(raw, this.#answered(status)) });
      this.end(hasLeft(answer) ? "canceled" : "ok", undefined, false);
    } catch (error) {
      const kind = error instanceof CellError ? error.kind : undefined;
      const thrown = kind === "exception" ? ((error as Error).cause as Thrown) : undefined;
      const message = error instanceof ObjectRefusal ? error.message : messageOf(kind);
      this.end(
        kind === undefined ? outcomeOf(error) : outcomes[kind],
        thrown ?? (message === undefined ? undefined : { name: "Error", message }),
        kind !== "exception",
      );
      throw error;
    }
  }

  #answered(status: number): number {
    const { event } = this.#start;
    if (event !== null && "request" in event) event.response = { status };
    return status;
  }

  /** Receives the logs from the script's isolate. */
  async collect(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // The wrapper sends logs once; anything more would only take memory.
    if (this.#isCollecting || this.#isDelivered) {
      request.resume();
      response.writeHead(204).end();
      return;
    }
    this.#isCollecting = true;
    const collected = await collectedIn(request);
    response.writeHead(204).end();
    this.#collected = await withShownStacks(collected, this.#shown);
    this.#deliverWhenWhole();
  }

  /** `isGone`: no logs can arrive any more. */
  end(outcome: Outcome, thrown: Omit<TailException, "timestamp"> | undefined, isGone: boolean): void {
    const exceptions = thrown === undefined ? [] : [{ ...thrown, timestamp: clock.now() }];
    this.#ended = { outcome, exceptions, wallTime: Math.round(performance.now() - this.#startedAt) };
    if (isGone) this.#collected ??= nothing;
    else this.#timer = setTimeout(() => this.#deliver(), collectMs).unref();
    this.#deliverWhenWhole();
  }

  #deliverWhenWhole(): void {
    if (this.#ended !== undefined && this.#collected !== undefined) this.#deliver();
  }

  #deliver(): void {
    if (this.#isDelivered) return;
    this.#isDelivered = true;
    clearTimeout(this.#timer);
    const { outcome, exceptions, wallTime } = this.#ended!;
    const { logs, truncated, exceptions: later } = this.#collected ?? nothing;
    this.#watched.deliver({
      ...this.#start,
      outcome: outcome === "ok" && later.length > 0 ? "exception" : outcome,
      logs,
      exceptions: [...exceptions, ...later],
      diagnosticsChannelEvents: [],
      truncated,
      wallTime,
    });
  }
}

/** Malformed logs are dropped, which harms only the script itself. */
async function collectedIn(request: IncomingMessage): Promise<Collected> {
  try {
    return readCollected(Buffer.from(await readBytes(request, collectedBytesMax)).toString());
  } catch {
    return nothing;
  }
}

/** Exceptions are logged as their stacks. */
const isStack = (value: unknown): value is string => typeof value === "string" && value.includes("\n    at ");

/** Maps the stacks in the logs and exceptions of a run. */
export async function withShownStacks(collected: Collected, shown: ShowStacks): Promise<Collected> {
  const { logs, exceptions } = collected;
  const stacks = [
    ...exceptions.flatMap(({ stack }) => stack ?? []),
    ...logs.flatMap(({ message }) => message.filter(isStack)),
  ].slice(0, stacksMax);
  if (stacks.length === 0) return collected;
  const found = await shown(stacks);
  const byStack = new Map(stacks.map((stack, i) => [stack, found[i]!]));
  const show = (value: unknown): unknown => (isStack(value) ? (byStack.get(value) ?? value) : value);
  return {
    ...collected,
    logs: logs.map((log) => ({ ...log, message: log.message.map(show) })),
    exceptions: exceptions.map((each) => ({ ...each, stack: show(each.stack) as string | undefined })),
  };
}

interface RunDetails {
  entrypoint?: string | undefined;
  objectId?: string | undefined;
  /** The span of the run; undefined without traces. */
  span?: { traceId: string; spanId: string } | undefined;
}

/** Undefined if no tail can match the run. */
export function openTrace(
  { tails, shown }: { tails: Tails; shown: ShowStacks },
  caller: Caller,
  namespace: string | undefined,
  describe: () => TailEvent["event"],
  { entrypoint, objectId, span }: RunDetails = {},
): RunTrace | undefined {
  const start: RunStart = {
    scriptName: caller.scriptName,
    scriptVersion: { id: caller.versionId },
    ...(namespace === undefined ? {} : { dispatchNamespace: namespace }),
    ...(entrypoint === undefined ? {} : { entrypoint }),
    ...(objectId === undefined ? {} : { durableObjectId: objectId }),
    ...(span === undefined ? {} : { traceId: span.traceId, spanId: span.spanId }),
    executionModel: objectId === undefined ? "stateless" : "durableObject",
    event: describe(),
    eventTimestamp: clock.now(),
  };
  const watched = tails.watch(caller, start);
  return watched && new RunTrace(watched, shown, start);
}

const outcomes: Record<CellErrorKind, Outcome> = {
  exception: "exception",
  cpu: "exceededCpu",
  memory: "exceededMemory",
  crashed: "unknown",
  overloaded: "unknown",
  unavailable: "unknown",
};

const messageOf = (kind: CellErrorKind | undefined): string | undefined =>
  kind === undefined || kind === "exception" ? undefined : cellErrorMessages[kind];

/** The outcome of a run of an object that ended with a refusal. */
function outcomeOf(error: unknown): Outcome {
  if (!(error instanceof ObjectRefusal)) return "unknown";
  if (error.message.includes("CPU")) return "exceededCpu";
  return error.message.includes("memory") ? "exceededMemory" : "unknown";
}

/** Whether the visitor left before the end. */
const hasLeft = (answer: RunOptions["answer"]): boolean =>
  "response" in answer && answer.response.destroyed && !answer.response.writableFinished;

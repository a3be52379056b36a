import type { IncomingMessage, ServerResponse } from "node:http";
import { z } from "zod";
import { readJson } from "../api/body.ts";
import type { RunOptions } from "../cells/cell.ts";
import { CellError, type CellErrorKind } from "../cells/errors.ts";
import type { Thrown } from "../cells/exchange.ts";
import type { Caller } from "../runtime/binding.ts";
import { messages } from "../runtime/errors.ts";
import type { Outcome, TailEvent, TailException } from "./event.ts";
import type { Tails, Watched } from "./tails.ts";

/** What the script's own side collected; it comes from its isolate, so it is as the script wants it. */
const CollectedSchema = z.object({
  logs: z.array(z.object({ level: z.string(), message: z.array(z.unknown()), timestamp: z.number() })),
  exceptions: z.array(
    z.object({ name: z.string(), message: z.string(), stack: z.string().optional(), timestamp: z.number() }),
  ),
  truncated: z.boolean(),
});
type Collected = z.output<typeof CollectedSchema>;

const nothing: Collected = { logs: [], exceptions: [], truncated: false };
const collectedBytesMax = 2 * 1024 * 1024;
/** How long what a script left running is waited for. */
const collectMs = 30_000;

export type RunStart = Omit<
  TailEvent,
  "outcome" | "logs" | "exceptions" | "truncated" | "wallTime" | "executionModel" | "diagnosticsChannelEvents"
>;

/** A run that somebody watches: told of when it is over and what it logged has come. */
export class RunTrace {
  readonly #watched: Watched;
  readonly #start: RunStart;
  readonly #startedAt = performance.now();
  #collected: Collected | undefined;
  #ended: { outcome: Outcome; exceptions: TailException[]; wallTime: number } | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isTold = false;

  constructor(watched: Watched, start: RunStart) {
    this.#watched = watched;
    this.#start = start;
  }

  /** Makes the run, and ends with it. */
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
      const message = kind === undefined || kind === "exception" ? undefined : messages[kind];
      this.end(
        kind === undefined ? "unknown" : outcomes[kind],
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

  /** What the run logged, from the script's side. */
  async collect(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // What cannot be read is left out: it is the script's own loss.
    this.#collected = await readJson(request, CollectedSchema, collectedBytesMax).catch(() => nothing);
    response.writeHead(204).end();
    this.#tellWhenWhole();
  }

  /** `isGone`: no logs can come any more. */
  end(outcome: Outcome, thrown: Omit<TailException, "timestamp"> | undefined, isGone: boolean): void {
    const exceptions = thrown === undefined ? [] : [{ ...thrown, timestamp: Date.now() }];
    this.#ended = { outcome, exceptions, wallTime: Math.round(performance.now() - this.#startedAt) };
    if (isGone) this.#collected ??= nothing;
    else this.#timer = setTimeout(() => this.#tell(), collectMs).unref();
    this.#tellWhenWhole();
  }

  #tellWhenWhole(): void {
    if (this.#ended !== undefined && this.#collected !== undefined) this.#tell();
  }

  #tell(): void {
    if (this.#isTold) return;
    this.#isTold = true;
    clearTimeout(this.#timer);
    const { outcome, exceptions, wallTime } = this.#ended!;
    const { logs, truncated, exceptions: later } = this.#collected ?? nothing;
    this.#watched.tell({
      ...this.#start,
      outcome: outcome === "ok" && later.length > 0 ? "exception" : outcome,
      logs,
      exceptions: [...exceptions, ...later],
      diagnosticsChannelEvents: [],
      executionModel: "stateless",
      truncated,
      wallTime,
    });
  }
}

/** Undefined where nobody wants to see a run that begins so. */
export function openTrace(
  tails: Tails,
  caller: Caller,
  namespace: string | undefined,
  describe: () => TailEvent["event"],
  entrypoint?: string,
): RunTrace | undefined {
  const start: RunStart = {
    scriptName: caller.scriptName,
    scriptVersion: { id: caller.versionId },
    ...(namespace === undefined ? {} : { dispatchNamespace: namespace }),
    ...(entrypoint === undefined ? {} : { entrypoint }),
    event: describe(),
    eventTimestamp: Date.now(),
  };
  const watched = tails.watch(caller, start);
  return watched && new RunTrace(watched, start);
}

const outcomes: Record<CellErrorKind, Outcome> = {
  exception: "exception",
  cpu: "exceededCpu",
  memory: "exceededMemory",
  crashed: "unknown",
  overloaded: "unknown",
  unavailable: "unknown",
};

/** Whether the visitor did not wait for the end. */
const hasLeft = (answer: RunOptions["answer"]): boolean =>
  "response" in answer && answer.response.destroyed && !answer.response.writableFinished;

import { CellError, type CellErrorKind } from "../../sandbox/errors.ts";
import type { Thrown } from "../../sandbox/gateway/exchange.ts";
import type { SingleUseCell } from "../../sandbox/single-use.ts";
import { visitorHeaders } from "../../edge/http/headers.ts";
import { endsWithin } from "../../platform/util/ends-within.ts";
import { clock } from "../../platform/timers/clock.ts";
import { cellErrorMessages } from "../cell-error-messages.ts";
import { contextOf } from "../runtime/run-context.ts";
import { treeOf, withoutVisitor, type RunRoot } from "../runtime/run-root.ts";
import { Run } from "../runtime/run.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { LoadedScript } from "../runtime/script-cache.ts";
import { scriptErrors } from "../scripts/errors.ts";
import { startupCpuMs, startupFault, startupRun } from "../startup.ts";
import type { Collected } from "../tail/collected.ts";
import type { TailException } from "../tail/event.ts";
import { withShownStacks, type ShowStacks } from "../tail/run-trace.ts";
import type { PreviewRequest } from "./asked.ts";
import { previewErrors } from "./errors.ts";
import { previewLimits } from "./limits.ts";
import { PreviewLogs } from "./logs.ts";
import { PreviewResponse, type TakenResponse } from "./response.ts";

export const outcomes = [
  "ok",
  "exception",
  "exceededCpu",
  "exceededMemory",
  "exceededTime",
  "crashed",
] as const;
export type PreviewOutcome = (typeof outcomes)[number];

/** The result of one run of unsaved code. Times in milliseconds. */
export interface PreviewRun {
  outcome: PreviewOutcome;
  /** Undefined if the code did not answer. */
  response: TakenResponse | undefined;
  /** `truncated`: logs were dropped. */
  collected: Collected;
  startupMs: number;
  cpuMs: number;
  wallMs: number;
  subrequests: number;
}

/** The code, its request, and what it runs with. */
export interface PreviewWork {
  runtime: Runtime;
  shown: ShowStacks;
  loaded: LoadedScript;
  asked: PreviewRequest;
  timeoutMs: number;
}

/** Runs code for one request, in a process that only it has. Throws an error of uploads if the code does not start. */
export async function runPreview(cell: SingleUseCell, work: PreviewWork): Promise<PreviewRun> {
  const { runtime, loaded, asked, timeoutMs } = work;
  const startupMs = await start(cell, loaded);
  const root: RunRoot = { ...withoutVisitor(), edgeRequest: asked.visitor };
  const [logs, response] = [new PreviewLogs(), new PreviewResponse(previewLimits.responseBodyBytesMax)];
  const context = contextOf(loaded, root);
  let last: Run | undefined;
  const measured = cell.measure(loaded.cell);
  const startedAt = performance.now();
  const sent = cell.run({
    script: loaded.cell,
    request: { ...asked.request, metadata: { isTraced: "early" } },
    answer: { response, headers: (raw, status) => visitorHeaders(raw, "", status) },
    // Each dispatch passes the gateway, so that code of customers does not run in this process.
    hooks: () => (last = new Run(runtime, context, logs, true)),
  });
  const hasStack = (): boolean => last?.thrownStack !== undefined;
  const { ended } = cell;
  const end = await endOf({ sent: failureOf(sent), logs, response, ended, hasStack }, timeoutMs);
  const wallMs = performance.now() - startedAt;
  measured.stop();
  const { cpuMs } = measured;
  const exceptions = [...exceptionsOf(end, last?.thrownStack, timeoutMs), ...logs.exceptions];
  const collected = { logs: logs.logs, exceptions, truncated: logs.isTruncated };
  return {
    outcome: outcomeOf(end, exceptions.length > 0),
    response: response.headersSent ? response.taken : undefined,
    collected: await withShownStacks(collected, work.shown),
    startupMs,
    cpuMs,
    wallMs,
    subrequests: treeOf(root).subrequests,
  };
}

/** Starts the code as an upload does. Resolves with the time that it took. */
async function start(cell: SingleUseCell, { cell: script }: LoadedScript): Promise<number> {
  const measured = cell.measure({ cpuMs: startupCpuMs, memoryBytes: script.memoryBytes });
  let startedAt = performance.now();
  try {
    const trial = startupRun({ ...script, isTrial: true }, () => (startedAt = performance.now()));
    if (await endsWithin(previewLimits.startMsMax, cell.run(trial))) return performance.now() - startedAt;
  } catch (error) {
    if (!(error instanceof CellError)) throw error;
    const fault = startupFault(error);
    throw fault === undefined ? previewErrors.unavailable() : scriptErrors.invalid(fault);
  } finally {
    measured.stop();
  }
  throw scriptErrors.invalid("Error: Script startup exceeded its time limit.");
}

interface Answer {
  /** Resolves when the answer has ended, with the reason if it failed. */
  sent: Promise<CellError | undefined>;
  logs: PreviewLogs;
  response: PreviewResponse;
  /** Resolves with the end of the process. */
  ended: Promise<CellError>;
  hasStack: () => boolean;
}

interface End {
  error: CellError | undefined;
  isLate: boolean;
}

/** Waits until the answer and all work of the run have ended, or until nothing more of it is wanted. */
async function endOf({ sent, logs, response, ended, hasStack }: Answer, timeoutMs: number): Promise<End> {
  let error: CellError | undefined;
  const work = async (): Promise<void> => {
    error = await Promise.race([sent, response.full.then(() => undefined)]);
    if (error !== undefined && error.kind !== "exception") return;
    // Without a stack, the exception may be of a constructor: then there was no handler, and there are no logs.
    const isOver = response.isTruncated || (error !== undefined && !hasStack());
    const ending = isOver ? endsWithin(previewLimits.logsMs, logs.whole) : logs.whole;
    error = (await Promise.race([ending.then(() => undefined), ended])) ?? error;
  };
  const isInTime = await endsWithin(timeoutMs, work());
  return { error, isLate: !isInTime };
}

/** A response can break off although its process goes on: its stream has thrown. */
async function failureOf(sent: Promise<void>): Promise<CellError | undefined> {
  try {
    await sent;
    return undefined;
  } catch (error) {
    return error instanceof CellError ? error : new CellError("exception", "The response was broken off.");
  }
}

const outcomeByKind: Record<CellErrorKind, PreviewOutcome> = {
  exception: "exception",
  cpu: "exceededCpu",
  memory: "exceededMemory",
  crashed: "crashed",
  overloaded: "crashed",
  unavailable: "crashed",
};

function outcomeOf({ error, isLate }: End, hasThrown: boolean): PreviewOutcome {
  if (error !== undefined) return outcomeByKind[error.kind];
  if (isLate) return "exceededTime";
  return hasThrown ? "exception" : "ok";
}

function exceptionsOf({ error, isLate }: End, stack: string | undefined, timeoutMs: number): TailException[] {
  const timestamp = clock.now();
  if (error?.kind === "exception") {
    const { name = "Error", stack: own } = (error.cause ?? {}) as Partial<Thrown>;
    return [{ name, message: error.message, stack: stack ?? own, timestamp }];
  }
  const message =
    error !== undefined
      ? cellErrorMessages[error.kind]
      : isLate
        ? `The run, or work that it passed to waitUntil, did not end within ${timeoutMs} ms.`
        : undefined;
  return message === undefined ? [] : [{ name: "Error", message, timestamp }];
}

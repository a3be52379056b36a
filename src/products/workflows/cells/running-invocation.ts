import type { CellRun } from "../../../sandbox/gateway/cell-run.ts";
import type { SharedWatch } from "../../../sandbox/limits/watch.ts";
import type { PreparedScript } from "../../../workers/runtime/runtime.ts";
import type { RunTrace } from "../../../workers/tail/run-trace.ts";
import type { WorkflowCode, Placement } from "./invocation-runner.ts";
import { InvocationSpan } from "./invocation-span.ts";
import type { WorkflowStream } from "./workflow-stream.ts";
import type { StartMessage } from "../worker/messages.ts";

/** Code that can be sent to a cell. */
export interface Prepared extends Pick<PreparedScript, "script" | "hooks" | "trace"> {
  /** False once the code has been deleted. */
  isThere(): boolean;
}

/** An invocation that runs, waits for a cell, or stands by. */
export interface RunningInvocation {
  invocation: number;
  code: WorkflowCode;
  /**
   * Undefined while the invocation stands by. A start message can be megabytes, so it is not kept after it is
   * sent.
   */
  start: StartMessage | "sent" | undefined;
  manner: Placement;
  traced: InvocationSpan;
  /** The cell and stream of the invocation; undefined while it waits for a cell. */
  placement:
    | {
        stream: WorkflowStream;
        cellRun: CellRun;
        token: string;
        trace: RunTrace | undefined;
        prepared: Prepared;
      }
    | undefined;
  /** Releases the dedicated cell. */
  leave: (error?: Error) => void;
  /**
   * Set for an invocation that must send no more requests: its code may still run for a moment, while its
   * instance runs elsewhere already.
   */
  isAborted: boolean;
  isOver: boolean;
}

/** The message that starts code in a cell. The code does not learn who created its instance. */
export function startText(start: StartMessage, isTraced: boolean): string {
  return JSON.stringify({ ...start, creatorTrace: undefined, isTraced });
}

/** An invocation that has no cell yet. */
export const waitingInvocation = (
  invocation: number,
  code: WorkflowCode,
  start: StartMessage | undefined,
  manner: Placement,
): RunningInvocation => ({
  invocation,
  code,
  start,
  manner,
  traced: new InvocationSpan(),
  placement: undefined,
  leave: () => {},
  isAborted: false,
  isOver: false,
});

/** A shared cell with its stream and its watch. */
export interface Shared {
  stream: WorkflowStream;
  watch: SharedWatch;
  /** Resident size of the cell when it was new, in bytes. */
  freshBytes: number;
  /** When the cell was last checked and found idle: `performance.now()`. */
  idleLookAt: number;
}

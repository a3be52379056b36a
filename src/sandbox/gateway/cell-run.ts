import type { RunOptions } from "../cell.ts";
import type { RunAdmission, ScriptSlots } from "../limits/admission.ts";
import type { CellRequest } from "./exchange.ts";
import { overloaded, type CellFault } from "../errors.ts";
import { clockSuffix } from "../process/script-clock.ts";
import type { CellScript } from "../process/script.ts";
import { randomText } from "../../platform/util/ids.ts";

/** One run in a cell: a request, an event, a call or an invocation of a workflow. */
export interface CellRun {
  readonly script: CellScript;
  /** The share whose slot it uses; invocations of workflows use none. */
  readonly share: ScriptSlots | undefined;
  /** `performance.now()` when the run was sent to the cell. */
  sentAt: number;
  /** Its part of the cell's CPU time in milliseconds, split evenly among concurrent runs. */
  cpuShareMs: number;
  fault: CellFault | undefined;
  /** Whether the run can be sent to another cell now. */
  isMovable: () => boolean;
  /** The token, once it was sent. */
  token: string | undefined;
  /** Whether its answer has begun: the script has returned it, or has thrown. */
  hasAnswer: boolean;
  /** Ends the run early; undefined until that is possible. */
  controller: { abort(reason: Error): void } | undefined;
}

const never = (): boolean => false;

/** The record of a run that starts now. `share` counts it for its account. */
export const newCellRun = (script: CellScript, share?: ScriptSlots, isMovable = never): CellRun => ({
  script,
  share,
  sentAt: performance.now(),
  cpuShareMs: 0,
  fault: undefined,
  isMovable,
  token: undefined,
  hasAnswer: false,
  controller: undefined,
});

/** The token of a run. It is secret, because the gateway attributes every request with it to the run. */
export const newToken = (): string => randomText(16, "base64url") + clockSuffix();

/** Releases a run's request and answer at its end: a cell keeps its last runs for a while, and needs neither. */
export function endCellRun(cellRun: CellRun): void {
  cellRun.isMovable = never;
  cellRun.controller = undefined;
}

/**
 * The queue of a waiting request: its host and first path segment, because dispatchers choose a customer by
 * one of these.
 */
const queueKeyOf = ({ headers: [, host], path }: CellRequest): string =>
  `${host}/${path.split(/[/?]/, 2)[1]}`;

/** Waits for a slot. Returns false if the client has left. Throws if the wait is refused. */
export async function waitForSlot(
  admission: RunAdmission,
  share: ScriptSlots,
  { answer, request }: RunOptions,
): Promise<boolean> {
  const client = "socket" in answer ? answer.socket : answer.response;
  const waited = await admission.wait(share, client, queueKeyOf(request));
  if (waited === "refused") throw overloaded();
  return waited === "admitted";
}

/** The oldest run of a share that was sent before a time and can be ended. */
function oldestOf(
  share: ScriptSlots,
  cells: Iterable<{ readonly runs: ReadonlySet<CellRun> }>,
  before: number,
): CellRun | undefined {
  let oldest: CellRun | undefined;
  let sentAt = before;
  for (const { runs } of cells) {
    for (const cellRun of runs) {
      if (cellRun.share !== share || cellRun.controller === undefined || cellRun.sentAt > sentAt) continue;
      oldest = cellRun;
      sentAt = cellRun.sentAt;
    }
  }
  return oldest;
}

/** Ends the oldest run of a share that was sent before a time, to free a slot. Returns false if there is none. */
export function endOldest(...from: Parameters<typeof oldestOf>): boolean {
  const oldest = oldestOf(...from);
  const controller = oldest?.controller;
  if (controller === undefined) return false;
  oldest!.controller = undefined;
  controller.abort(overloaded());
  return true;
}

const togetherMs = 2;
const recentMs = 1000;

/**
 * The runs that may have caused a fault of a cell. All scripts share one thread, and one run has occupied it since the
 * last sign of life. That run was sent before it, was the first one sent after it, or was sent in the second before it
 * and has been answered, with work left running.
 */
export function possibleCulpritsOf(cell: {
  readonly runs: ReadonlySet<CellRun>;
  readonly recent: readonly CellRun[];
  readonly lastActivityAt: number;
}): CellRun[] {
  const { lastActivityAt } = cell;
  const sent = [...cell.runs];
  const later = sent.filter((cellRun) => cellRun.sentAt > lastActivityAt + togetherMs);
  const firstLater = later.toSorted((a, b) => a.sentAt - b.sentAt)[0];
  return [
    ...sent.filter((cellRun) => cellRun.sentAt <= lastActivityAt + togetherMs || cellRun === firstLater),
    ...cell.recent.filter(
      (cellRun) => cellRun.script.profile === "script" && cellRun.sentAt > lastActivityAt - recentMs,
    ),
  ];
}

/*
 * The runs that calls in this cell have begun: those in progress, and those that ended lately, because work that they left
 * running may make requests. The place of a run is part of its token, so that no map is needed: an object may be called
 * many thousand times a second, and V8 rebuilds the table of a map over and over while keys come and go.
 */
import type { LocalCall } from "../../protocol.ts";

/** A run that may call objects of this cell. */
export interface CallingRun {
  script: string;
  generation: string;
  /** As in Family, for the run alone. */
  lot: number;
  made: number;
  family: Family;
  /** Number of further calls, one below the other, that may begin below the run. */
  depthLeft: number;
  /** JSON that the called objects see as `request.cf`. */
  visitor: string | undefined;
}
/** The calls of a run that the gateway has begun, and of all runs that they have begun here. */
export interface Family {
  /** Number of calls after which one of the runs asks the gateway, which counts the calls. */
  lot: number;
  /** Calls since one of the runs last asked. */
  made: number;
}

export interface LocalRun {
  readonly token: string;
  /** The call that began it. The gateway asks for it when the run makes its first request. */
  readonly call: LocalCall;
  /** Undefined after its end, and if it may not call objects. */
  caller: CallingRun | undefined;
  hasEnded: boolean;
}

/** This number of runs takes about 20 MB. */
const keptMax = 50_000;
const kept: LocalRun[] = [];
let begun = 0;
/** Runs that were in progress when so many further ones had begun. */
const long = new Map<string, LocalRun>();
/** Number of long runs from which on those that have ended are dropped. */
const longMax = 1000;

export function addRun(call: LocalCall, caller: CallingRun | undefined): LocalRun {
  const place = begun++ % keptMax;
  const before = kept[place];
  if (before !== undefined && !before.hasEnded) keepLong(before);
  return (kept[place] = {
    token: `local.${place}.${crypto.randomUUID()}`,
    call,
    caller,
    hasEnded: false,
  });
}

function keepLong(run: LocalRun): void {
  if (long.size >= longMax) for (const [token, { hasEnded }] of long) if (hasEnded) long.delete(token);
  long.set(run.token, run);
}

export function endRun(run: LocalRun): void {
  run.hasEnded = true;
  run.caller = undefined;
}

/** The run of a token; undefined for a run that the gateway has begun. */
export function runOf(token: string): LocalRun | undefined {
  const run = kept[Number(token.split(".", 2)[1])];
  return run?.token === token ? run : long.get(token);
}

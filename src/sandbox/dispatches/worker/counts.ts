/* Counts the dispatches of this cell for the gateway, which asks for them about once a second. */
import type { CountedDispatches, DispatchCount } from "../../protocol.ts";

/** Dispatched scripts between two questions; further ones are not counted. */
const scriptsMax = 4000;
const faultLengthMax = 120;
const targetsLengthMax = 1024;
/** The targets of a run are kept until its answer begins, and then for at least this time, or for so many further runs. */
const answeredMs = 30_000;
const answeredMax = 20_000;

let counts = new Map<string, DispatchCount>();
/** The ids of the scripts that a run has dispatched to, by its token: of runs without an answer, and of answered ones. */
const targets = new Map<string, string>();
let answered = new Map<string, string>();
let answeredEarlier = new Map<string, string>();
let answeredSince = 0;

/** `isOpen`: whether the run has no answer yet. `endTargets` is called once it has. */
export function countDispatch(run: string, id: string, isOpen: boolean): void {
  const before = targetsOf(run);
  if (!before.includes(id)) {
    const after = before === "" ? id : `${before} ${id}`.slice(0, targetsLengthMax);
    if (isOpen) targets.set(run, after);
    else keepAnswered(run, after);
  }
  const count = countOf(id);
  if (count !== undefined) count.requests++;
}

/** The counts may have been taken since the dispatch began. */
export function countFault(id: string, { name, message }: { name: string; message: string }): void {
  const count = countOf(id);
  if (count === undefined) return;
  count.faults++;
  count.lastFault = `${name}: ${message}`.slice(0, faultLengthMax).toWellFormed();
}

function countOf(id: string): DispatchCount | undefined {
  let count = counts.get(id);
  if (count === undefined && counts.size < scriptsMax) counts.set(id, (count = { requests: 0, faults: 0 }));
  return count;
}

const targetsOf = (run: string): string =>
  targets.get(run) ?? answered.get(run) ?? answeredEarlier.get(run) ?? "";

function keepAnswered(run: string, ids: string): void {
  const now = Date.now();
  if (answered.size >= answeredMax || now - answeredSince >= answeredMs) {
    answeredEarlier = answered;
    answered = new Map();
    answeredSince = now;
  }
  answered.set(run, ids);
}

/** The run has its answer, whose body may take longer. */
export function endTargets(run: string): void {
  const ids = targets.get(run);
  if (ids === undefined) return;
  targets.delete(run);
  keepAnswered(run, ids);
}

/** The counts since the last question, and the scripts that these runs have dispatched to. */
export function takeDispatches(runs: readonly string[]): CountedDispatches {
  const taken = { scripts: [...counts], targets: runs.map(targetsOf) };
  counts = new Map();
  return taken;
}

/* Counts the dispatches of this cell for the gateway, which asks for them about once a second. */
import type { CountedDispatches, DispatchCount } from "../../protocol.ts";

/** Dispatched scripts between two questions; further ones are not counted. */
const scriptsMax = 4000;
const faultLengthMax = 120;
/** Runs whose targets are kept for each of the last two questions. */
const runsMax = 50_000;

let counts = new Map<string, DispatchCount>();
/** The ids of the scripts that a run has dispatched to, by its token: of this interval, and of the one before. */
let targets = new Map<string, string>();
let earlierTargets = new Map<string, string>();

export function countDispatch(run: string, id: string): void {
  const before = targets.get(run);
  if (before === undefined || !before.includes(id)) {
    if (targets.size >= runsMax) nextInterval();
    targets.set(run, before === undefined ? id : `${before} ${id}`.slice(0, 1024));
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

function nextInterval(): void {
  earlierTargets = targets;
  targets = new Map();
}

/** The counts since the last question, and the scripts that these runs have dispatched to. */
export function takeDispatches(runs: readonly string[]): CountedDispatches {
  const taken = {
    scripts: [...counts],
    targets: runs.map((run) => targets.get(run) ?? earlierTargets.get(run) ?? ""),
  };
  counts = new Map();
  nextInterval();
  return taken;
}

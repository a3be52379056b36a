import { readdirSync, readFileSync } from "node:fs";
import { cpuMicroseconds, endedChildrenMicroseconds } from "./measure.ts";

/** The ids of a process and all its descendants. */
export function processTree(pid: number): number[] {
  const parents = new Map<number, number>();
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const [, parent] = /^\d+ \(.*\) \S+ (\d+)/s.exec(readFileSync(`/proc/${entry}/stat`, "latin1"))!;
      parents.set(Number(entry), Number(parent));
    } catch {
      // it has ended
    }
  }
  const isBelow = (each: number): boolean => {
    for (let at: number | undefined = each; at !== undefined; at = parents.get(at))
      if (at === pid) return true;
    return false;
  };
  return [...parents.keys()].filter(isBelow);
}

/** CPU time until now of a process (`own`) and of its descendants, ended ones too (`below`), in microseconds. */
export function treeCpuMicroseconds(pid: number): { own: number; below: number } {
  const own = cpuMicroseconds(pid);
  let below = endedChildrenMicroseconds(pid);
  for (const each of processTree(pid)) {
    if (each === pid) continue;
    try {
      below += cpuMicroseconds(each) + endedChildrenMicroseconds(each);
    } catch {
      // it has ended
    }
  }
  return { own, below };
}

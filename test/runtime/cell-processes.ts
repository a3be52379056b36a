import { closeSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { CpuClock } from "../../src/sandbox/process/cpu-clock.ts";

/** Pids of the cells among the descendants of a process, from /proc. */
export function cellPids(ancestor: number): number[] {
  const known = new Map<number, { parent: number; name: string }>();
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const [, name, parent] = /^\d+ \((.*)\) \S+ (\d+)/s.exec(
        readFileSync(`/proc/${entry}/stat`, "latin1"),
      )!;
      known.set(Number(entry), { name: name!, parent: Number(parent) });
    } catch {
      // the process has ended
    }
  }
  const isBelow = (pid: number): boolean => {
    for (let at = known.get(pid); at !== undefined; at = known.get(at.parent))
      if (at.parent === ancestor) return true;
    return false;
  };
  return [...known].filter(([pid, { name }]) => name === "workerd" && isBelow(pid)).map(([pid]) => pid);
}

/** Resident memory in MiB; 0 for a process that has ended. */
export function residentMebibytes(pid: number): number {
  try {
    return (Number(readFileSync(`/proc/${pid}/statm`, "latin1").split(" ")[1]) * 4096) / 1024 / 1024;
  } catch {
    return 0;
  }
}

interface Sampled {
  clock: CpuClock;
  stat: number;
  firstMs: number;
  lastMs: number;
}

/** PF_EXITING in `stat`: the process is ending, and takes up to 5 ms to release its memory. */
const exitingFlag = 4;

const quietMs = 20;

/** Resolves when all cells have been idle for a while: none boots, none is ending. */
export async function cellsAtRest(ancestor: number): Promise<void> {
  const used = (): string =>
    cellPids(ancestor)
      .map((pid) => `${pid} ${schedstatOf(pid)}`)
      .join();
  for (let [before, now] = ["", used()]; before !== now; [before, now] = [now, used()]) await sleep(quietMs);
}

function schedstatOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/schedstat`, "latin1");
  } catch {
    return "";
  }
}

/** Samples the CPU time of cells' main threads continuously while they live. */
export class CpuSampler {
  readonly #buffer = Buffer.alloc(512);
  readonly #open = new Map<number, Sampled>();

  /** Starts again with the current cells. */
  begin(ancestor: number): void {
    this.end();
    for (const pid of cellPids(ancestor)) {
      try {
        const [clock, stat] = [new CpuClock(pid), openSync(`/proc/${pid}/stat`, "r")];
        const firstMs = clock.writtenMs();
        this.#open.set(pid, { clock, stat, firstMs, lastMs: firstMs });
      } catch {
        // the process has ended
      }
    }
  }

  sample(): void {
    for (const each of this.#open.values()) {
      const ms = each.clock.nowMs();
      if (!Number.isNaN(ms) && !this.#isExiting(each.stat)) each.lastMs = ms;
    }
  }

  /** CPU time since `begin` of the cell that has ended; if none has, the highest of all cells. */
  end(): number {
    let [most, ended] = [0, 0];
    for (const { clock, stat, firstMs, lastMs } of this.#open.values()) {
      most = Math.max(most, lastMs - firstMs);
      if (this.#isExiting(stat)) ended = Math.max(ended, lastMs - firstMs);
      clock.close();
      closeSync(stat);
    }
    this.#open.clear();
    return ended > 0 ? ended : most;
  }

  #isExiting(stat: number): boolean {
    try {
      const text = this.#buffer.toString(
        "latin1",
        0,
        readSync(stat, this.#buffer, 0, this.#buffer.length, 0),
      );
      return (Number(/\) (?:\S+ ){6}(\d+)/.exec(text)![1]) & exitingFlag) !== 0;
    } catch {
      return true;
    }
  }
}

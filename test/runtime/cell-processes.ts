import { closeSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";

/** The cells among the descendants of a process, as the operating system sees them. */
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
      // it has ended
    }
  }
  const isBelow = (pid: number): boolean => {
    for (let at = known.get(pid); at !== undefined; at = known.get(at.parent))
      if (at.parent === ancestor) return true;
    return false;
  };
  return [...known].filter(([pid, { name }]) => name === "workerd" && isBelow(pid)).map(([pid]) => pid);
}

/** Resident memory, in MiB; 0 for a process that has ended. */
export function residentMebibytes(pid: number): number {
  try {
    return (Number(readFileSync(`/proc/${pid}/statm`, "latin1").split(" ")[1]) * 4096) / 1024 / 1024;
  } catch {
    return 0;
  }
}

interface Sampled {
  schedstat: number;
  stat: number;
  firstMs: number;
  lastMs: number;
}

/** Of the flags in `stat`: the process is about to be gone, and spends up to 5 ms on giving back its memory. */
const exitingFlag = 4;

/** Reads the CPU time of cells' main threads again and again, for as long as they live. */
export class CpuSampler {
  readonly #buffer = Buffer.alloc(512);
  readonly #open = new Map<number, Sampled>();

  /** Begins anew with the cells of now. */
  begin(ancestor: number): void {
    this.end();
    for (const pid of cellPids(ancestor)) {
      try {
        const [schedstat, stat] = [
          openSync(`/proc/${pid}/schedstat`, "r"),
          openSync(`/proc/${pid}/stat`, "r"),
        ];
        const firstMs = this.#cpuMs(schedstat);
        this.#open.set(pid, { schedstat, stat, firstMs, lastMs: firstMs });
      } catch {
        // it has ended
      }
    }
  }

  sample(): void {
    for (const each of this.#open.values()) {
      const ms = this.#cpuMs(each.schedstat);
      if (!Number.isNaN(ms) && !this.#isExiting(each.stat)) each.lastMs = ms;
    }
  }

  /** The most that one of them has used since. */
  end(): number {
    let most = 0;
    for (const { schedstat, stat, firstMs, lastMs } of this.#open.values()) {
      most = Math.max(most, lastMs - firstMs);
      closeSync(schedstat);
      closeSync(stat);
    }
    this.#open.clear();
    return most;
  }

  #cpuMs(schedstat: number): number {
    return Number(this.#read(schedstat)?.split(" ")[0] ?? Number.NaN) / 1e6;
  }

  #isExiting(stat: number): boolean {
    const flags = /\) (?:\S+ ){6}(\d+)/.exec(this.#read(stat) ?? "")?.[1];
    return flags === undefined || (Number(flags) & exitingFlag) !== 0;
  }

  #read(file: number): string | undefined {
    try {
      return this.#buffer.toString("latin1", 0, readSync(file, this.#buffer, 0, this.#buffer.length, 0));
    } catch {
      return undefined;
    }
  }
}

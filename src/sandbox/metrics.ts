import type { Metric } from "prom-client";
import { counters, gauges, type Sample } from "../platform/observability/instruments.ts";
import type { Cells } from "./cells.ts";

type Measured = Pick<Cells, "counts" | "ends" | "processes">;

/** Metrics of cells: of those for scripts of accounts, and of those for customers' scripts. */
export function cellMetrics(cells: Readonly<Record<"accounts" | "customers", Measured>>): Metric[] {
  const all = Object.entries(cells);
  const clocks = all.map(([of, each]) => [of, new CpuTimes(each)] as const);
  return [
    gauges("cells", "Processes that run scripts", ["of", "kind"], () =>
      all.flatMap(([of, { counts }]): Sample[] => [
        [{ of, kind: "shared" }, counts.shared],
        [{ of, kind: "dedicated_or_spare" }, counts.all - counts.shared],
      ]),
    ),
    gauges("cell_memory_bytes", "Resident memory of the processes that run scripts", ["of"], () =>
      all.map(([of, { processes }]) => [{ of }, sum(processes.map((each) => each.rssBytes()))]),
    ),
    counters("cell_ends_total", "Processes that ran scripts and have ended", ["of", "reason"], () =>
      all.flatMap(([of, { ends }]) =>
        Object.entries(ends).map(([reason, count]): Sample => [{ of, reason }, count]),
      ),
    ),
    counters("script_cpu_seconds_total", "CPU time of the threads that run scripts", ["of"], () =>
      clocks.map(([of, times]) => [{ of }, times.totalMs() / 1000]),
    ),
  ];
}

/** CPU time of all cells. The time between the last reading and the end of a cell is missing. */
class CpuTimes {
  readonly #cells: Measured;
  /** By process id. */
  #running = new Map<number, number>();
  #endedMs = 0;

  constructor(cells: Measured) {
    this.#cells = cells;
  }

  totalMs(): number {
    const now = new Map<number, number>();
    for (const process of this.#cells.processes) {
      const ms = process.cpuMs();
      if (!Number.isNaN(ms)) now.set(process.pid, ms);
    }
    for (const [pid, ms] of this.#running) if (!now.has(pid)) this.#endedMs += ms;
    this.#running = now;
    return this.#endedMs + sum([...now.values()]);
  }
}

const sum = (values: readonly number[]): number =>
  values.reduce((total, value) => total + (Number.isNaN(value) ? 0 : value), 0);

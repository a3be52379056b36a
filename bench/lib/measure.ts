import { readdirSync, readFileSync } from "node:fs";

/** The clock of `/proc/PID/stat` (USER_HZ, proc(5)), in microseconds. */
const tickMicroseconds = 10_000;

/** The CPU time of ended threads, as far as it is known, by process. */
const endedThreads = new Map<number, number>();

/**
 * CPU time that a process, all of its threads together, has used until now, in microseconds. The scheduler's figures of
 * threads are exact but end with the thread; the process's own figure keeps them, but steps by 10 ms, a third of many
 * rounds. It is never above the truth, so the difference of both is the least that ended threads have used.
 */
export function cpuMicroseconds(pid: number): number {
  const [user, system] = statFields(pid).slice(11, 13);
  const whole = (Number(user) + Number(system)) * tickMicroseconds;
  let nanoseconds = 0;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    try {
      nanoseconds += Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ")[0]);
    } catch {
      // the thread ended between the two calls
    }
  }
  const living = nanoseconds / 1000;
  const ended = Math.max(endedThreads.get(pid) ?? 0, whole - living);
  endedThreads.set(pid, ended);
  return living + ended;
}

/** CPU time of the children of a process that have ended, and of their children, in microseconds. */
export function endedChildrenMicroseconds(pid: number): number {
  const [user, system] = statFields(pid).slice(13, 15);
  return (Number(user) + Number(system)) * tickMicroseconds;
}

/** The fields of `/proc/PID/stat` from the state on, which is the third. */
function statFields(pid: number): string[] {
  const text = readFileSync(`/proc/${pid}/stat`, "latin1");
  return text.slice(text.lastIndexOf(")") + 2).split(" ");
}

export function residentMegabytes(pid: number): number {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kilobytes) / 1024;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** The median of a[i]/b[i], so that only rounds that ran next to each other are compared. */
export const pairedRatio = (a: readonly number[], b: readonly number[]): number =>
  median(a.map((value, index) => value / b[index]!));

export interface Goal {
  what: string;
  measured: number;
  goal: string;
  met: boolean;
}
export const atLeast = (what: string, measured: number, bound: number): Goal => ({
  what,
  measured,
  goal: `≥ ${bound}`,
  met: measured >= bound,
});
export const atMost = (what: string, measured: number, bound: number): Goal => ({
  what,
  measured,
  goal: `≤ ${bound}`,
  met: measured <= bound,
});
export const reported = (what: string, measured: number): Goal => ({
  what,
  measured,
  goal: "reported",
  met: true,
});

/** Prints rows under headings, as a Markdown table. */
export function printTable(
  headings: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): void {
  const cells = [headings, ...rows].map((row) =>
    row.map((cell) => (typeof cell === "number" ? format(cell) : cell)),
  );
  const widths = headings.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)));
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, i) => cell.padEnd(widths[i]!)).join(" | ")} |\n`;
  const [head = [], ...body] = cells;
  process.stdout.write(
    `\n${line(head)}${line(widths.map((width) => "-".repeat(width)))}${body.map(line).join("")}`,
  );
}

export function printGoals(goals: readonly Goal[]): void {
  printTable(
    ["figure", "measured", "goal", ""],
    goals.map(({ what, measured, goal, met }) => [
      what,
      measured,
      goal,
      goal === "reported" ? "" : met ? "met" : "MISSED",
    ]),
  );
  if (goals.some(({ met }) => !met)) process.exitCode = 1;
}

const format = (value: number): string =>
  value >= 1000 ? String(Math.round(value)) : value >= 10 ? value.toFixed(1) : value.toFixed(3);

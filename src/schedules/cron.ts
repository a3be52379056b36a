import type { Cron } from "croner";

/** An expression of five fields in UTC. Days of the week are 1 (Sunday) to 7, or SUN to SAT. */
export type Timetable = Cron;

/** Reads an expression; a string tells what is wrong with it. */
export async function readCron(expression: string): Promise<Timetable | string> {
  const fields = expression.trim().split(/\s+/);
  if (fields.length !== 5) return `expected 5 fields but received ${fields.length}`;
  const strange = fields.find((field) => !/^[0-9A-Za-z*,/#-]+$/.test(field));
  if (strange !== undefined) return `the field ${JSON.stringify(strange)} cannot be read`;
  if (/(^|[,-])([089]|\d\d)/.test(fields[4]!))
    return `expected days of the week from 1 (Sunday) to 7 but received ${fields[4]}`;
  // What most installations never need is loaded when there is a first schedule.
  const { Cron } = await import("croner");
  try {
    const timetable = new Cron(fields.join(" "), {
      mode: "5-part",
      timezone: "UTC",
      paused: true,
      alternativeWeekdays: true,
      sloppyRanges: true,
    });
    return timetable.nextRun() === null ? "there is no such time" : timetable;
  } catch (error) {
    return (error as Error).message;
  }
}

/** The first minute after a time; undefined when there is none any more. */
export const nextAfter = (timetable: Timetable, afterMs: number): number | undefined =>
  timetable.nextRun(new Date(afterMs))?.getTime();

/** How many minutes lie after a time and before another, and the last of them. Counting ends at the limit. */
export function between(
  timetable: Timetable,
  afterMs: number,
  beforeMs: number,
  countMax: number,
): { count: number; lastMs: number } {
  let [count, lastMs] = [0, afterMs];
  for (;;) {
    const next = nextAfter(timetable, lastMs);
    if (next === undefined || next >= beforeMs || count === countMax) return { count, lastMs };
    count += 1;
    lastMs = next;
  }
}

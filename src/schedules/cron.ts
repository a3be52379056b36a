import type { Cron } from "croner";

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const expressionLengthMax = 256;

/** An expression of five fields in UTC. Days of the week are 1 (Sunday) to 7, or SUN to SAT. */
export class Timetable {
  readonly #cron: Cron;
  /** On each day that fits, in order: every one of these minutes in every one of these hours. */
  readonly #hours: readonly number[];
  readonly #minutes: readonly number[];

  constructor(cron: Cron, hours: readonly number[], minutes: readonly number[]) {
    this.#cron = cron;
    this.#hours = hours;
    this.#minutes = minutes;
  }

  /** The first minute after a time; undefined when there is none any more. */
  next(afterMs: number): number | undefined {
    return this.#cron.nextRun(new Date(afterMs))?.getTime();
  }

  /** How many minutes lie after a time and before another, and the last of them: one look for each day that fits. */
  between(afterMs: number, beforeMs: number): { count: number; lastMs: number } {
    let [count, lastMs] = [0, afterMs];
    for (let at = afterMs; ;) {
      const next = this.next(at);
      if (next === undefined || next >= beforeMs) return { count, lastMs };
      const day = Math.floor(next / dayMs) * dayMs;
      for (const hour of this.#hours)
        for (const minute of this.#minutes) {
          const ms = day + (hour * 60 + minute) * minuteMs;
          if (ms >= next && ms < beforeMs) [count, lastMs] = [count + 1, ms];
        }
      at = day + dayMs - 1;
    }
  }
}

/** Reads an expression; a string tells what is wrong with it. */
export async function readCron(expression: string): Promise<Timetable | string> {
  if (expression.length > expressionLengthMax) return `expected at most ${expressionLengthMax} characters`;
  const fields = expression.trim().split(/\s+/);
  if (fields.length !== 5) return `expected 5 fields but received ${fields.length}`;
  const strange = fields.find((field) => !/^[0-9A-Za-z*,/#-]+$/.test(field));
  if (strange !== undefined) return `the field ${JSON.stringify(strange)} cannot be read`;
  if (/(^|[,-])([089]|\d\d)/.test(fields[4]!))
    return `expected days of the week from 1 (Sunday) to 7 but received ${fields[4]}`;
  // What most installations never need is loaded when there is a first schedule.
  const { Cron } = await import("croner");
  const read = (text: string): Cron =>
    new Cron(text, {
      mode: "5-part",
      timezone: "UTC",
      paused: true,
      alternativeWeekdays: true,
      sloppyRanges: true,
    });
  try {
    const cron = read(fields.join(" "));
    if (cron.nextRun() === null) return "there is no such time";
    const [minute = "", hour = ""] = fields;
    return new Timetable(cron, valuesOf(hour, 24), valuesOf(minute, 60));
  } catch (error) {
    return (error as Error).message;
  }
}

/** What a field of minutes or hours that has been found right stands for. */
function valuesOf(field: string, count: number): number[] {
  const values = new Set<number>();
  for (const item of field.split(",")) {
    const [range = "", step = "1"] = item.split("/");
    const [first, last] = range === "*" || range === "" ? [0, count - 1] : range.split("-").map(Number);
    const end = last ?? (item.includes("/") ? count - 1 : first!);
    for (let value = first!; value <= end; value += Number(step)) values.add(value);
  }
  return [...values].toSorted((a, b) => a - b);
}

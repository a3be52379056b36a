import type { Cron } from "croner";
import { show } from "../../platform/util/json.ts";

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const expressionLengthMax = 256;

/** A cron expression of five fields in UTC. Days of the week are 1 (Sunday) to 7, or SUN to SAT. */
export class Timetable {
  readonly #cron: Cron;
  /** Hours and minutes on matching days, in order. */
  readonly #hours: readonly number[];
  readonly #minutes: readonly number[];

  constructor(cron: Cron, hours: readonly number[], minutes: readonly number[]) {
    this.#cron = cron;
    this.#hours = hours;
    this.#minutes = minutes;
  }

  /** The first matching minute after a time; undefined when there is none. */
  next(afterMs: number): number | undefined {
    return this.#cron.nextRun(new Date(afterMs))?.getTime();
  }

  /**
   * The number of matching minutes between two times, and the last one. Takes one step for each matching day.
   */
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

const fieldNames = ["minutes", "hours", "days of the month", "months", "days of the week"];

/** Parses an expression; returns the reason as a string when it is invalid. */
export async function readCron(expression: string): Promise<Timetable | string> {
  if (expression.length > expressionLengthMax) return `expected at most ${expressionLengthMax} characters`;
  const fields = expression.trim().split(/\s+/);
  if (fields.length !== 5) return `expected 5 fields but received ${fields.length}`;
  const strange = fields.find((field) => !/^[0-9A-Za-z*,/#-]+$/.test(field));
  if (strange !== undefined) return `the field ${JSON.stringify(strange)} is invalid`;
  if (/(^|[,-])([089]|\d\d)/.test(fields[4]!))
    return `expected days of the week from 1 (Sunday) to 7 but received ${fields[4]}`;
  // Most installations need no cron library, so it is loaded with the first schedule.
  const { Cron } = await import("croner");
  const read = (text: string): Cron =>
    new Cron(text, {
      mode: "5-part",
      timezone: "UTC",
      paused: true,
      alternativeWeekdays: true,
      sloppyRanges: true,
    });
  const isReadable = (text: string): boolean => {
    try {
      read(text);
      return true;
    } catch {
      return false;
    }
  };
  try {
    const cron = read(fields.join(" "));
    if (cron.nextRun() === null) return "there is no such time";
    const [minute = "", hour = ""] = fields;
    return new Timetable(cron, valuesOf(hour, 24), valuesOf(minute, 60));
  } catch {
    const at = fields.findIndex(
      (field, i) => !isReadable(fields.map((_, j) => (i === j ? field : "*")).join(" ")),
    );
    return at < 0 ? "it is invalid" : `the field ${show(fields[at])} is not valid for ${fieldNames[at]}`;
  }
}

/** The values of a valid field of minutes or hours. */
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

import { TestFault } from "./test-fault.ts";

const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  second: 1000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  week: 604_800_000,
  month: 30 * 86_400_000,
  year: 365 * 86_400_000,
};

/** Milliseconds of a text such as "30 days", "1 hour" or "90 seconds"; a number is milliseconds. */
export function durationMsOf(duration: string | number): number {
  if (typeof duration === "number") return duration;
  const [, count, unit] = /^(\d+(?:\.\d+)?) ?([a-z]+?)s?$/i.exec(duration.trim()) ?? [];
  const each = unit === "m" ? 1 : unitMs[unit?.toLowerCase() ?? ""];
  if (count === undefined || each === undefined)
    throw new TestFault(
      400,
      `Expected a duration such as "30 days" but received ${JSON.stringify(duration)}`,
    );
  return Math.round(Number(count) * each);
}

const second = 1000;
const day = 86_400 * second;
const unitMs: Record<string, number> = {
  second,
  minute: 60 * second,
  hour: 3600 * second,
  day,
  week: 7 * day,
  month: 30 * day,
  year: 365 * day,
};

/** The longest sleep, and the longest wait for an event. */
export const durationMsMax = 365 * day;

/** Milliseconds of a duration: a number of them, or a count and a unit such as "5 minutes". Throws on anything else. */
export function durationMs(duration: unknown, what: string): number {
  if (typeof duration === "number" && Number.isFinite(duration)) return Math.max(0, duration);
  if (typeof duration === "string") {
    const [, count, unit] = /^(\d{1,15}(?:\.\d{1,9})?) ?([a-z]+?)s?$/i.exec(duration.trim()) ?? [];
    const size = unit === undefined ? undefined : unitMs[unit.toLowerCase()];
    if (count !== undefined && size !== undefined) return Number(count) * size;
  }
  throw new TypeError(
    `Expected milliseconds or a text such as "5 minutes" (${Object.keys(unitMs).join(", ")}) for ${what} but received ${describe(duration)}`,
  );
}

const describe = (value: unknown): string =>
  typeof value === "string" ? JSON.stringify(value.slice(0, 80)) : String(value);

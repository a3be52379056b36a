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

/** The longest sleep and the longest wait for an event, in milliseconds. */
export const durationMsMax = 365 * day;

/**
 * A duration in milliseconds: a number, or a text such as "5 minutes". Throws on anything else, and on
 * negative durations.
 */
export function durationMs(duration: unknown, what: string): number {
  const ms = signedMs(duration, what);
  if (ms >= 0) return ms;
  throw new TypeError(`Expected a duration of at least 0 for ${what} but received ${describe(duration)}`);
}

/** As `durationMs` for a sleep: a negative duration is 0. */
export const sleepMs = (duration: unknown, what: string): number => Math.max(0, signedMs(duration, what));

function signedMs(duration: unknown, what: string): number {
  if (typeof duration === "number" && Number.isFinite(duration)) return duration;
  if (typeof duration === "string") {
    const [, count, unit] = /^(-?\d{1,15}(?:\.\d{1,9})?) +([a-z]+?)s?$/i.exec(duration.trim()) ?? [];
    const size = unit === undefined ? undefined : unitMs[unit.toLowerCase()];
    if (count !== undefined && size !== undefined) return Number(count) * size;
  }
  throw new TypeError(
    `Expected milliseconds or a text such as "5 minutes" (${Object.keys(unitMs).join(", ")}) for ${what} but received ${describe(duration)}`,
  );
}

const describe = (value: unknown): string =>
  typeof value === "string" ? JSON.stringify(value.slice(0, 80)) : String(value);

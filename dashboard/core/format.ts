const numbers = new Intl.NumberFormat();
const times = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "narrow" });
const units = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
] as const;

export const count = (value: number): string => numbers.format(value);
/** "1 record", "2 records" */
export const plural = (value: number, one: string, many = `${one}s`): string =>
  `${numbers.format(value)} ${value === 1 ? one : many}`;

/** 1536 → "1.5 KiB" */
export function bytes(value: number): string {
  const names = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = value < 1 ? 0 : Math.min(names.length - 1, Math.floor(Math.log2(value) / 10));
  const scaled = value / 1024 ** power;
  return `${power === 0 || scaled >= 100 ? Math.round(scaled) : scaled.toFixed(1)} ${names[power]}`;
}

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
/** The time zone of all times on the screen, such as "Europe/Berlin". */
export const timeZone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
/** With seconds and the time zone. */
export const exactTimeOf = (iso: string | number): string => exact.format(new Date(iso));
export const timeOf = (iso: string | number): string => times.format(new Date(iso));
export const clockOf = (ms: number): string => clock.format(new Date(ms));

/** "2h ago", "in 3d" */
export function ago(iso: string | number): string {
  const distance = new Date(iso).getTime() - Date.now();
  const [unit, ms] = units.find(([, each]) => Math.abs(distance) >= each) ?? units[3];
  return relative.format(Math.round(distance / ms), unit);
}

/** 345600 → "4 days", 90 → "90 seconds" */
export function span(seconds: number): string {
  const [unit, ms] =
    units.find(([, each]) => seconds * 1000 >= each && (seconds * 1000) % each === 0) ?? units[3];
  return plural((seconds * 1000) / ms, unit);
}

/** 0.2 → "0.20 ms", 1500 → "1.5 s", 260,000 → "4.3 min" */
export function duration(ms: number): string {
  if (ms < 10) return `${ms.toFixed(2)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const [unit, each] = ms < 120_000 ? ["s", 1000] : ms < 7_200_000 ? ["min", 60_000] : ["h", 3_600_000];
  return `${(ms / each).toFixed(1)} ${unit}`;
}

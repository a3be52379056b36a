import { createRequire } from "node:module";

/** workerd knows dates up to a week after its release. */
const daysAhead = 7;

/** Read when the first script starts. */
let newest: string | undefined;

/** The newest compatibility date that workerd knows. */
function newestDate(): string {
  const { compatibilityDate } = createRequire(import.meta.url)("workerd") as { compatibilityDate: string };
  const date = new Date(`${compatibilityDate}T00:00:00Z`);
  date.setUTCDate(date.getUTCDate() + daysAhead);
  return date.toISOString().slice(0, 10);
}

/**
 * The compatibility date for workerd: that of the script, or the newest one that workerd knows. Creators of projects
 * write the current day, which may be later than this release of workerd.
 */
export function runtimeDate(date: string): string {
  newest ??= newestDate();
  return date < newest ? date : newest;
}

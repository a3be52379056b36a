import { clock } from "../../platform/timers/clock.ts";
import { randomText } from "../../platform/util/ids.ts";

/** Ids of entries: UUIDs of version 7 that only grow in one process, also within a millisecond. */
let lastMs = 0;
let number = 0;
/** The part of the id that is the same for all of a millisecond. */
let prefix = "";

export function newEntryId(now = clock.now()): string {
  if (now > lastMs) startAt(now);
  else if (++number > 0xfff) startAt(lastMs + 1);
  return entryId(prefix, number, randomText(8, "hex"));
}

function startAt(timeMs: number): void {
  [lastMs, number, prefix] = [timeMs, 0, prefixOf(timeMs)];
}

/** The lowest id of a time. Entries before it have lower ids. */
export const firstIdAt = (timeMs: number): string =>
  entryId(prefixOf(Math.min(Math.max(0, Math.floor(timeMs)), 2 ** 48 - 1)), 0, "0".repeat(16));

/** When an entry was written, in epoch milliseconds. */
export const timeOfEntry = (id: string): number => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);

function prefixOf(timeMs: number): string {
  const time = timeMs.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7`;
}

function entryId(beginning: string, count: number, random: string): string {
  const variant = "89ab"[Number.parseInt(random[0]!, 16) & 3];
  const counted = count === 0 ? "000" : count.toString(16).padStart(3, "0");
  return `${beginning}${counted}-${variant}${random.slice(1, 4)}-${random.slice(4)}`;
}

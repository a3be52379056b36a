import { clock } from "../../platform/timers/clock.ts";
import { randomText } from "../../platform/util/ids.ts";

/** Ids of entries: UUIDs of version 7 that only grow in one process, also within a millisecond. */
let lastMs = 0;
let number = 0;

export function newEntryId(now = clock.now()): string {
  if (now > lastMs) [lastMs, number] = [now, 0];
  else if (++number > 0xfff) [lastMs, number] = [lastMs + 1, 0];
  return entryId(lastMs, number, randomText(8, "hex"));
}

/** The lowest id of a time. Entries before it have lower ids. */
export const firstIdAt = (timeMs: number): string =>
  entryId(Math.min(Math.max(0, Math.floor(timeMs)), 2 ** 48 - 1), 0, "0".repeat(16));

/** When an entry was written, in epoch milliseconds. */
export const timeOfEntry = (id: string): number => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);

function entryId(timeMs: number, count: number, random: string): string {
  const time = timeMs.toString(16).padStart(12, "0");
  const variant = (8 | (Number.parseInt(random[0]!, 16) & 3)).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${count.toString(16).padStart(3, "0")}-${variant}${random.slice(1, 4)}-${random.slice(4)}`;
}

import { randomText } from "../../../platform/util/ids.ts";

/**
 * A segment of a spool is a file: `START-PID-RANDOM.open` while its process appends to it, `.ready` when it
 * waits for its upload. The name contains all its metadata, so that any process can upload it after a crash.
 */
export interface SpoolSegment {
  /** When the first event was written, in milliseconds since 1970. */
  startMs: number;
  pid: number;
  /** A part of the uploaded file's name. Random, so that no two processes or nodes use the same name. */
  random: string;
}

export const newSegment = (startMs: number): SpoolSegment => ({
  startMs: Math.floor(startMs),
  pid: process.pid,
  random: randomText(8, "hex"),
});

export const fileOf = ({ startMs, pid, random }: SpoolSegment, state: "open" | "ready"): string =>
  `${String(startMs).padStart(14, "0")}-${pid}-${random}.${state}`;

/** Undefined for other files. */
export function readSegmentName(file: string): (SpoolSegment & { state: "open" | "ready" }) | undefined {
  const match = /^(\d{14})-(\d+)-([\da-f]{16})\.(open|ready)$/.exec(file);
  if (match === null) return undefined;
  const [, startMs, pid, random, state] = match;
  return { startMs: Number(startMs), pid: Number(pid), random: random!, state: state as "open" | "ready" };
}

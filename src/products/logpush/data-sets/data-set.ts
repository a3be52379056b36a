import type { TimestampFormat } from "../job.ts";

/** The JSON of a field of an event; undefined if it is not known. */
export type WriteField<Event> = (event: Event) => string | undefined;

/** A kind of events that jobs push. */
export interface DataSet<Event> {
  /** The owners of its jobs. */
  scope: "zone" | "account";
  /** The contents of each field, by its name. */
  descriptions: Readonly<Record<string, string>>;
  writers(format: TimestampFormat): Readonly<Record<string, WriteField<Event>>>;
}

/** A string as JSON; undefined if there is none. */
export const writeText = (value: string | null | undefined): string | undefined =>
  value === null || value === undefined ? undefined : JSON.stringify(value);

/** How to write a moment, given in milliseconds since 1970. */
export const writeTime: Readonly<Record<TimestampFormat, (ms: number) => string>> = {
  // Nanoseconds exceed the exact integers of a double, so they are written as microseconds and three zeros.
  unixnano: (ms) => `${Math.round(ms * 1000)}000`,
  unix: (ms) => String(Math.floor(ms / 1000)),
  rfc3339: (ms) => `"${iso(ms).slice(0, 19)}Z"`,
  rfc3339ms: (ms) => `"${iso(ms)}"`,
  rfc3339ns: (ms) =>
    `"${iso(ms).slice(0, 20)}${String(Math.floor((ms % 1000) * 1000)).padStart(6, "0")}000Z"`,
};

const iso = (ms: number): string => new Date(ms).toISOString();

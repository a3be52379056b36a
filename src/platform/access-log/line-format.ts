import { asciiJson } from "../util/ascii-json.ts";
import { keepingLast, writeLatin1, writeNumber, type WriteBytes } from "./write-bytes.ts";
import { sentHeader, type AccessRecord } from "./access-record.ts";
import type { FieldName } from "./declaration.ts";
import { fields, header, isPlain, rayLength, type FieldValue, type TimeOrPlace } from "./fields.ts";

/** How to write a moment, given in milliseconds of `performance.now()`. */
export type Timestamp = WriteBytes<number>;

/** How lines are written. */
export interface LineFormat {
  fields: readonly FieldName[];
  requestHeaders: readonly string[];
  responseHeaders: readonly string[];
  timestamp: Timestamp;
  colo: string;
}

const { timeOrigin } = performance;

/** Nanoseconds exceed the exact integers of a double, so they are written as microseconds and three zeros. */
export const timestamps = {
  unixnano: (ms, bytes, at) => writeLatin1(`${Math.round((timeOrigin + ms) * 1000)}000`, bytes, at),
  unix: (ms, bytes, at) => writeLatin1(String(Math.floor((timeOrigin + ms) / 1000)), bytes, at),
  rfc3339: rfc3339(),
} as const satisfies Record<string, Timestamp>;

function rfc3339(): Timestamp {
  const ends = Array.from({ length: 1000 }, (_, rest) => `${String(rest).padStart(3, "0")}Z"`);
  const writeSecond = keepingLast<number>((second, bytes, at) =>
    writeLatin1(`"${new Date(second).toISOString().slice(0, -4)}`, bytes, at),
  );
  let second = 0;
  return (ms, bytes, at) => {
    const atMs = Math.floor(timeOrigin + ms);
    // A division of so large numbers is slow, and most lines are of the same second.
    if (atMs < second || atMs >= second + 1000) second = Math.floor(atMs / 1000) * 1000;
    return writeLatin1(ends[atMs - second]!, bytes, writeSecond(second, bytes, at));
  };
}

/** Writes a field after a comma and its name; nothing if it is not known. */
type WriteField = WriteBytes<AccessRecord>;

const quote = 0x22;

function writeJson(value: FieldValue, bytes: Buffer, at: number): number {
  if (typeof value === "number") return writeNumber(value, bytes, at);
  if (typeof value === "boolean" || !isPlain(value)) return writeLatin1(asciiJson(value), bytes, at);
  bytes[at] = quote;
  const end = writeLatin1(value, bytes, at + 1);
  bytes[end] = quote;
  return end + 1;
}

/** No two requests have the same ray, and it is only digits. */
function writeRay(ray: string, bytes: Buffer, at: number): number {
  bytes[at] = quote;
  for (let i = 0; i < rayLength; i++) bytes[at + 1 + i] = ray.charCodeAt(i);
  bytes[at + 1 + rayLength] = quote;
  return at + rayLength + 2;
}

const beginningOf = (name: string): string => `,${JSON.stringify(name)}:`;

function fieldWriter(name: Exclude<FieldName, TimeOrPlace>): WriteField {
  const { read, show } = fields[name];
  const beginning = beginningOf(name);
  const write = keepingLast<FieldValue>((value, bytes, at) => {
    const shown = typeof value === "string" && show !== undefined ? show(value) : value;
    return writeJson(shown, bytes, writeLatin1(beginning, bytes, at));
  });
  return (record, bytes, at) => {
    const value = read(record);
    return value === undefined ? at : write(value, bytes, at);
  };
}

function writerOf(name: FieldName, { timestamp, colo }: LineFormat): WriteField {
  const beginning = beginningOf(name);
  switch (name) {
    case "EdgeStartTimestamp":
      return ({ startMs }, bytes, at) => timestamp(startMs, bytes, writeLatin1(beginning, bytes, at));
    case "EdgeEndTimestamp":
      return ({ endMs }, bytes, at) => timestamp(endMs, bytes, writeLatin1(beginning, bytes, at));
    case "RayID":
      return ({ ray }, bytes, at) =>
        ray === undefined ? at : writeRay(ray, bytes, writeLatin1(beginning, bytes, at));
    case "EdgeColoCode": {
      const text = beginning + asciiJson(colo);
      return (_, bytes, at) => writeLatin1(text, bytes, at);
    }
    default:
      return fieldWriter(name);
  }
}

function headersWriter(
  name: "RequestHeaders" | "ResponseHeaders",
  headers: readonly string[],
  valueOf: (record: AccessRecord, header: string) => string | undefined,
): WriteField {
  return (record, bytes, at) => {
    const found: Record<string, string> = {};
    for (const each of headers) {
      const value = valueOf(record, each);
      if (value !== undefined) found[each] = value;
    }
    return writeLatin1(beginningOf(name) + asciiJson(found), bytes, at);
  };
}

const openingBrace = 0x7b;

/** Returns a function that writes a record as one line of JSON, in ASCII, and leaves out unknown fields. */
export function lineFormatter(format: LineFormat): WriteBytes<AccessRecord> {
  const { requestHeaders, responseHeaders } = format;
  const writers = format.fields.map((name) => writerOf(name, format));
  if (requestHeaders.length > 0) writers.push(headersWriter("RequestHeaders", requestHeaders, header));
  if (responseHeaders.length > 0) {
    const write = headersWriter("ResponseHeaders", responseHeaders, ({ response }, name) =>
      sentHeader(response!, name),
    );
    writers.push((record, bytes, at) => (record.response === undefined ? at : write(record, bytes, at)));
  }
  return (record, bytes, start) => {
    let at = start;
    for (const write of writers) at = write(record, bytes, at);
    bytes[start] = openingBrace; // in place of the comma of the first field
    return writeLatin1("}\n", bytes, Math.max(at, start + 1));
  };
}

import { randomFillSync, randomUUID, randomUUIDv7 } from "node:crypto";

let uuid: () => string = randomUUID;

/** For the test kit: where the UUIDs (version 4) of all new ids come from. */
export function setIds(source: () => string): void {
  uuid = source;
}

/** A new id in the API's form: 32 lower-case hex characters. */
export const newId = (): string => uuid().replaceAll("-", "");
/** A random UUID (version 4), for resources whose ids are UUIDs in the public API. */
export const newUuid = (): string => uuid();
/** Like newUuid, but ordered by time (UUIDv7), so that an index grows at its end. */
export const newOrderedUuid = (): string => randomUUIDv7();
/** Whether a text has the form of the API's ids: 32 hex digits in lower case. */
export const isId = (text: string): boolean => /^[0-9a-f]{32}$/.test(text);

/** Formats milliseconds in the API's RFC 3339 form. */
export const isoTime = (timeMs: number): string => new Date(timeMs).toISOString();

const pool = Buffer.allocUnsafeSlow(4096);
let at = pool.length;

/**
 * Unguessable text for ids: `bytes` random bytes, at most 4096. One system call serves many ids, and each
 * takes a quarter of the garbage of a UUID.
 */
export function randomText(bytes: number, encoding: "hex" | "base64url"): string {
  if (at + bytes > pool.length) {
    randomFillSync(pool);
    at = 0;
  }
  return pool.toString(encoding, at, (at += bytes));
}

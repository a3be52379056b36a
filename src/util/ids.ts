import { randomUUID, randomUUIDv7 } from "node:crypto";

/** A fresh id as the API shows it: 32 lower-case hex characters. */
export const newId = (): string => randomUUID().replaceAll("-", "");
export const newUuid = (): string => randomUUID();
/** As newUuid; those that are made one after the other stand side by side in an index, so that it grows in one place. */
export const newOrderedUuid = (): string => randomUUIDv7();
export const isId = (text: string): boolean => /^[0-9a-f]{32}$/.test(text);

/** Milliseconds to the API's RFC 3339 form. */
export const isoTime = (timeMs: number): string => new Date(timeMs).toISOString();

/**
 * A moment of the log of objects: 16 hexadecimal digits, of which 12 are the milliseconds of the wall clock
 * and 4 a counter. Stamps of one log never repeat, and sort as texts.
 */
export type Stamp = string;

const counterBits = 16n;
const pattern = /^([0-9a-f]{8})-([0-9a-f]{8})-0000000([01])-[0-9a-f]{32}$/;

const textOf = (value: bigint): Stamp => value.toString(16).padStart(16, "0");

/** The last stamp of a millisecond: commits until then have lower stamps. */
export const stampAt = (ms: number): Stamp =>
  textOf((BigInt(Math.max(0, Math.floor(ms))) << counterBits) | 0xffffn);

/** The time of a stamp in milliseconds of the wall clock. */
export const msOf = (stamp: Stamp): number => Number(BigInt(`0x${stamp}`) >> counterBits);

/** Below all stamps. */
export const noStamp: Stamp = "0".repeat(16);

/** Above all stamps. */
export const maxStamp: Stamp = "f".repeat(16);

/** The public form of a moment, a bookmark. `owner` has 32 hexadecimal digits. */
export const bookmarkAt = (stamp: Stamp, owner: string): string =>
  `${stamp.slice(0, 8)}-${stamp.slice(8)}-00000000-${owner}`;

/**
 * A bookmark that undoes a restore: the last moment before a restore that was requested at `stamp` and
 * happens later.
 */
export const undoBookmarkAt = (stamp: Stamp, owner: string): string =>
  `${stamp.slice(0, 8)}-${stamp.slice(8)}-00000001-${owner}`;

/** The moment of a bookmark of one of these owners; undefined for any other text. */
export function readBookmark(
  bookmark: string,
  owners: readonly string[],
): { stamp: Stamp; isUndo: boolean } | undefined {
  const [, high, low, kind] = pattern.exec(bookmark) ?? [];
  if (high === undefined || !owners.some((owner) => bookmark.endsWith(`-${owner}`))) return undefined;
  return { stamp: `${high}${low}`, isUndo: kind === "1" };
}

/** Makes stamps. When the clock jumps back, they continue from the last one. */
export class Stamps {
  #last: bigint;

  constructor(last: Stamp) {
    this.#last = BigInt(`0x${last}`);
  }

  get last(): Stamp {
    return textOf(this.#last);
  }

  /** Another node has made a stamp: later ones are higher. */
  see(stamp: Stamp): void {
    const seen = BigInt(`0x${stamp}`);
    if (seen > this.#last) this.#last = seen;
  }

  next(): Stamp {
    const now = BigInt(Date.now()) << counterBits;
    this.#last = now > this.#last ? now : this.#last + 1n;
    return textOf(this.#last);
  }
}

/**
 * Writes a value at a position of memory, and returns the position after it. If there is no room, that is beyond the end
 * of the memory, and the bytes are incomplete.
 */
export type WriteBytes<T> = (value: T, bytes: Buffer, at: number) => number;

/** A call of V8 for a shorter text costs more than a loop over its characters. */
const loopMax = 24;

/** Writes a text of characters below 0x100, one byte each. Texts that were joined from others are slow. */
export function writeLatin1(text: string, bytes: Buffer, at: number): number {
  const end = at + text.length;
  if (text.length <= loopMax) for (let i = at; i < end; i++) bytes[i] = text.charCodeAt(i - at);
  else if (end <= bytes.length) bytes.write(text, at, "latin1");
  return end;
}

const zero = 0x30;

/** Writes the digits of a number. Whole numbers below 2^31 are cheap. */
export function writeNumber(value: number, bytes: Buffer, at: number): number {
  const whole = value | 0;
  if (whole !== value || whole < 0) return writeLatin1(String(value), bytes, at);
  let end = at + 1;
  for (let rest = whole; rest > 9; rest = (rest / 10) | 0) end++;
  for (let i = end - 1, rest = whole; i >= at; i--, rest = (rest / 10) | 0) bytes[i] = zero + (rest % 10);
  return end;
}

const keptMax = 1024;

/**
 * Returns a function that writes values, and keeps the bytes of a value that comes twice in a row: copying them is
 * cheaper, and neighbours often share their values.
 */
export function keepingLast<T>(write: WriteBytes<T>): WriteBytes<T> {
  let last: T | undefined;
  let kept: Uint8Array | undefined;
  return (value, bytes, at) => {
    if (value !== last) {
      last = value;
      kept = undefined;
      return write(value, bytes, at);
    }
    if (kept !== undefined) {
      const end = at + kept.length;
      if (end <= bytes.length) bytes.set(kept, at);
      return end;
    }
    const end = write(value, bytes, at);
    if (end <= bytes.length && end - at <= keptMax) kept = Uint8Array.prototype.slice.call(bytes, at, end);
    return end;
  };
}

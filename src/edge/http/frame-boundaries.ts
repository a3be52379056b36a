/**
 * Frames of one message. Receivers keep a message until it is whole, and some memory for each of its frames, even if they are
 * empty, so that the limit of a message's size does not limit its memory.
 */
export const messageFramesMax = 65_536;

/** Memory of a receiver for a frame of an unfinished message, without its payload. */
const frameMemoryBytes = 128;

/** Follows the frames of a WebSocket in a stream of bytes, however they are split. */
export class FrameBoundaries {
  /** Bytes of the current frame that are still to come. */
  #left = 0;
  #header: number[] = [];
  #messageFrames = 0;
  #messageBytes = 0;
  /** Of the current frame. */
  #isControl = false;
  #isLast = true;
  /** Number of frames that have begun. */
  frames = 0;
  /** Whether a frame had a reserved bit, which only extensions use. */
  hasReservedBit = false;

  /** Whether the current message has more frames than a message may have. */
  get hasTooManyFrames(): boolean {
    return this.#messageFrames > messageFramesMax;
  }

  get isBetweenFrames(): boolean {
    return this.#left === 0 && this.#header.length === 0;
  }

  /** Memory that a receiver needs for the part of the current message that has passed. */
  get unfinishedBytes(): number {
    return this.#messageBytes + this.#messageFrames * frameMemoryBytes;
  }

  pass(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) at = this.step(bytes, at);
  }

  /** Passes a header, or the payload of a frame, from `at` on. Returns where it ends, or where the bytes end. */
  step(bytes: Uint8Array, at: number): number {
    if (this.#left > 0) {
      const taken = Math.min(this.#left, bytes.length - at);
      this.#left -= taken;
      this.#take(taken);
      return at + taken;
    }
    while (at < bytes.length) {
      this.#header.push(bytes[at++]!);
      const length = frameBytes(this.#header);
      if (length === undefined) continue;
      this.#begin(this.#header[0]!);
      this.#left = length;
      this.#header = [];
      this.#take(0);
      break;
    }
    return at;
  }

  /** `first` is the first byte of a frame. Control frames may be between those of a message. */
  #begin(first: number): void {
    this.frames++;
    if ((first & 0x70) !== 0) this.hasReservedBit = true;
    this.#isControl = (first & 0x08) !== 0;
    this.#isLast = (first & 0x80) !== 0;
    if (!this.#isControl) this.#messageFrames = this.#isLast ? 0 : this.#messageFrames + 1;
  }

  #take(bytes: number): void {
    if (this.#isControl) return;
    this.#messageBytes = this.#isLast && this.#left === 0 ? 0 : this.#messageBytes + bytes;
  }
}

const headerBytes = ([, second = 0]: readonly number[]): number => {
  const length = second & 0x7f;
  return 2 + (length === 127 ? 8 : length === 126 ? 2 : 0) + (second >= 0x80 ? 4 : 0);
};

/** The payload's bytes, once the header is complete. */
function frameBytes(header: readonly number[]): number | undefined {
  if (header.length < 2 || header.length < headerBytes(header)) return undefined;
  const length = header[1]! & 0x7f;
  if (length < 126) return length;
  return header.slice(2, length === 126 ? 4 : 10).reduce((sum, byte) => sum * 256 + byte, 0);
}

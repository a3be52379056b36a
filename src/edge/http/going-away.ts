import type { Socket } from "node:net";

/** A close frame of a server with status 1001, "going away" (RFC 6455, 7.4.1). */
const closeFrame = Buffer.from("880203e9", "hex");

/** Time for the visitor's own close frame. */
const answerMs = 2000;

/**
 * Frames of one message. Receivers keep a message until it is whole, and some memory for each of its frames, even if they are
 * empty, so that the limit of a message's size does not limit its memory.
 */
export const messageFramesMax = 65_536;

/** Finds out whether bytes of WebSocket frames end with a whole frame, and counts the frames of the current message. */
export class FrameBoundaries {
  /** Bytes of the current frame that are still to come. */
  #left = 0;
  #header: number[] = [];
  #messageFrames = 0;

  /** Whether the current message has more frames than a message may have. */
  get hasTooManyFrames(): boolean {
    return this.#messageFrames > messageFramesMax;
  }

  get isBetweenFrames(): boolean {
    return this.#left === 0 && this.#header.length === 0;
  }

  pass(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      if (this.#left > 0) {
        const taken = Math.min(this.#left, bytes.length - at);
        this.#left -= taken;
        at += taken;
        continue;
      }
      this.#header.push(bytes[at++]!);
      const length = frameBytes(this.#header);
      if (length === undefined) continue;
      this.#count(this.#header[0]!);
      this.#left = length;
      this.#header = [];
    }
  }

  /** `first` is the first byte of a frame. Control frames may be between those of a message. */
  #count(first: number): void {
    if ((first & 0x08) !== 0) return;
    const isLast = (first & 0x80) !== 0;
    this.#messageFrames = isLast ? 0 : this.#messageFrames + 1;
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

const leaving = new WeakMap<Socket, () => void>();

/**
 * Follows the frames that `from` sends to a visitor's WebSocket, so that `sayGoingAway` can close it between
 * two frames. `head` has been sent before.
 */
export function followFrames(visitor: Socket, from: Socket, head: Uint8Array): void {
  const boundaries = new FrameBoundaries();
  boundaries.pass(head);
  let isLeaving = false;
  const leave = (): void => {
    isLeaving = true;
    if (!boundaries.isBetweenFrames) return;
    leaving.delete(visitor);
    from.unpipe(visitor).off("data", pass).resume();
    visitor.end(closeFrame);
    setTimeout(() => visitor.destroy(), answerMs).unref();
  };
  // Registered after the pipe, so the bytes have been written to the visitor.
  const pass = (bytes: Buffer): void => {
    boundaries.pass(bytes);
    if (boundaries.hasTooManyFrames) {
      from.destroy();
      visitor.destroy();
    } else if (isLeaving) leave();
  };
  from.on("data", pass);
  leaving.set(visitor, leave);
}

/** Ends both connections of a WebSocket when `from` sends a message with too many frames. `head` has been sent before. */
export function limitFrames(from: Socket, to: Socket, head: Uint8Array): void {
  const boundaries = new FrameBoundaries();
  const pass = (bytes: Uint8Array): void => {
    boundaries.pass(bytes);
    if (!boundaries.hasTooManyFrames) return;
    from.destroy();
    to.destroy();
  };
  pass(head);
  from.on("data", pass);
}

/** Closes a visitor's WebSocket with status 1001 after the current frame. */
export function sayGoingAway(visitor: Socket): void {
  leaving.get(visitor)?.();
}

import type { Socket } from "node:net";

/** A close frame of a server with status 1001, "going away" (RFC 6455, 7.4.1). */
const closeFrame = Buffer.from("880203e9", "hex");

/** Time for the visitor's own close frame. */
const answerMs = 2000;

/** Finds out whether bytes of WebSocket frames end with a whole frame. */
export class FrameBoundaries {
  /** Bytes of the current frame that are still to come. */
  #left = 0;
  #header: number[] = [];

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
      this.#left = frameBytes(this.#header) ?? 0;
      if (this.#left > 0 || isEmptyFrame(this.#header)) this.#header = [];
    }
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

const isEmptyFrame = (header: readonly number[]): boolean => frameBytes(header) === 0;

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
    if (isLeaving) leave();
  };
  from.on("data", pass);
  leaving.set(visitor, leave);
}

/** Closes a visitor's WebSocket with status 1001 after the current frame. */
export function sayGoingAway(visitor: Socket): void {
  leaving.get(visitor)?.();
}

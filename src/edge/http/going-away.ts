import type { Socket } from "node:net";
import { FrameBoundaries } from "./frame-boundaries.ts";

/** Status codes of WebSockets (RFC 6455, 7.4.1). */
export type CloseStatus = 1001 | 1002 | 1009;

/** A close frame of a server. */
const closeFrame = (status: CloseStatus): Buffer => Buffer.of(0x88, 2, status >> 8, status & 0xff);

/** Time for the visitor's own close frame. */
const answerMs = 2000;

const leaving = new WeakMap<Socket, (status: CloseStatus) => boolean>();

/**
 * Follows the frames that `from` sends to a visitor's WebSocket, so that it can be closed between
 * two frames. `head` has been sent before.
 */
export function followFrames(visitor: Socket, from: Socket, head: Uint8Array): void {
  const boundaries = new FrameBoundaries();
  boundaries.pass(head);
  let leavesWith: CloseStatus | undefined;
  const leave = (status: CloseStatus): boolean => {
    leavesWith = status;
    if (!boundaries.isBetweenFrames) return false;
    leaving.delete(visitor);
    from.unpipe(visitor).off("data", pass).resume();
    visitor.end(closeFrame(status));
    setTimeout(() => visitor.destroy(), answerMs).unref();
    return true;
  };
  // Registered after the pipe, so the bytes have been written to the visitor.
  const pass = (bytes: Buffer): void => {
    boundaries.pass(bytes);
    if (boundaries.hasTooManyFrames) {
      from.destroy();
      visitor.destroy();
    } else if (leavesWith !== undefined) leave(leavesWith);
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
  leaving.get(visitor)?.(1001);
}

/** Closes a visitor's WebSocket at once. No more frames come for it. */
export function closeWebSocket(visitor: Socket, status: CloseStatus): void {
  if (leaving.get(visitor)?.(status) !== true) visitor.destroy();
}

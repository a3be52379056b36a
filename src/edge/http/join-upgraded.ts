import type { Socket } from "node:net";
import { responseHead, join } from "../../platform/util/raw-http.ts";
import { followFrames, limitFrames } from "./going-away.ts";

/** A connection whose client or server has agreed to an upgrade. */
export interface UpgradedEnd {
  socket: Socket;
  /** Bytes received after the head. */
  head: Buffer;
}

/** Answers a visitor with 101 and these headers, and passes the bytes of a WebSocket between the two connections. */
export function joinUpgraded(
  visitor: UpgradedEnd,
  upstream: UpgradedEnd,
  statusText: string,
  headers: readonly string[],
  idleTimeoutMs: number,
): void {
  const answer = responseHead(101, statusText, [...headers, "connection", "upgrade", "upgrade", "websocket"]);
  visitor.socket.write(answer, "latin1");
  if (upstream.head.length > 0) visitor.socket.write(upstream.head);
  if (visitor.head.length > 0) upstream.socket.write(visitor.head);
  join(visitor.socket, upstream.socket, idleTimeoutMs);
  join(upstream.socket, visitor.socket, idleTimeoutMs);
  followFrames(visitor.socket, upstream.socket, upstream.head);
  limitFrames(visitor.socket, upstream.socket, visitor.head);
}

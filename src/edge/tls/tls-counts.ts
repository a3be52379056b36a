import type { TLSSocket } from "node:tls";

/** Counts of TLS handshakes and of open HTTP/2 connections. */
export class TlsCounts {
  /** By TLS version, and by whether the session was resumed. */
  readonly handshakes = new Map<string, { version: string; resumed: string; count: number }>();
  failures = 0;
  sessions = (): number => 0;

  note(socket: TLSSocket): void {
    const version = socket.getProtocol() ?? "unknown";
    const resumed = String(socket.isSessionReused());
    const key = `${version} ${resumed}`;
    const before = this.handshakes.get(key);
    if (before === undefined) this.handshakes.set(key, { version, resumed, count: 1 });
    else before.count++;
  }
}

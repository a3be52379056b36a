import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { peerTls } from "../origin-client/peer-tls.ts";
import { tlsError, visitorErrors } from "../http/errors.ts";
import type { Origins } from "./origins.ts";
import type { OwnHosts } from "../configuration/own-hosts.ts";
import { addressesOf, type LookUp } from "./resolve.ts";
import type { EdgeSettings } from "../http/settings.ts";

/** The destination of a script's socket. */
export interface SocketDestination {
  hostname: string;
  port: number;
}

/** Bytes and sockets since the start, and open sockets. */
export interface SocketCounts {
  opened: number;
  open: number;
  sentBytes: number;
  receivedBytes: number;
}

/**
 * Opens sockets for scripts, to the same addresses as their fetches but never to the edge, which accepts only
 * requests.
 */
export class OutboundSockets {
  readonly counts: SocketCounts = { opened: 0, open: 0, sentBytes: 0, receivedBytes: 0 };
  readonly #origins: Origins;
  readonly #lookUp: LookUp;
  readonly #settings: EdgeSettings;
  #ownHosts: OwnHosts | undefined;

  constructor(origins: Origins, lookUp: LookUp, settings: EdgeSettings) {
    this.#origins = origins;
    this.#lookUp = lookUp;
    this.#settings = settings;
  }

  serve(ownHosts: OwnHosts): void {
    this.#ownHosts = ownHosts;
  }

  /** Time without traffic in either direction after which a socket is closed. */
  get idleTimeoutMs(): number {
    return this.#settings.idleTimeoutMs;
  }

  /**
   * Connects. With `allowHalfOpen` the caller ends its side after the other one. Rejects with a visitor
   * error.
   */
  async open(address: SocketDestination, allowHalfOpen: boolean): Promise<Socket> {
    const { port } = address;
    const host = unbracketed(address.hostname);
    const own = this.#ownHosts?.find(host, port, false) ?? this.#ownHosts?.find(host, port, true);
    if (own !== undefined && "listener" in own) throw visitorErrors.ownListener();
    this.#origins.underTest.hooks?.connects(`tcp://${address.hostname}:${port}`, host);
    const addresses = this.#origins.choose(await addressesOf(host, own?.targets, this.#lookUp), port);
    const socket = await this.#origins.connect(addresses, port, async (each) =>
      this.#connect(each, port, allowHalfOpen),
    );
    this.#count(socket);
    return socket;
  }

  /** Starts TLS on a connection. Rejects with a visitor error and closes the connection. */
  async secure(plain: Socket, hostname: string): Promise<Socket> {
    const { originCa, originConnectTimeoutMs } = this.#settings;
    const host = unbracketed(hostname);
    try {
      const secure = connectTls({
        ...peerTls,
        socket: plain,
        host,
        ...(isIP(host) === 0 && { servername: host }),
        ...(originCa !== undefined && { ca: [...originCa] }),
      });
      await settled(secure, "secureConnect", originConnectTimeoutMs);
      return secure;
    } catch (error) {
      plain.destroy();
      throw tlsError(error as Error);
    }
  }

  async #connect(host: string, port: number, allowHalfOpen: boolean): Promise<Socket> {
    const { originSourceAddress: localAddress, originConnectTimeoutMs } = this.#settings;
    const socket = connect({
      host,
      port,
      allowHalfOpen,
      noDelay: true,
      ...(localAddress && { localAddress }),
    });
    await settled(socket, "connect", originConnectTimeoutMs);
    return socket;
  }

  #count(socket: Socket): void {
    this.counts.opened++;
    this.counts.open++;
    socket.once("close", () => {
      this.counts.open--;
      this.counts.sentBytes += socket.bytesWritten;
      this.counts.receivedBytes += socket.bytesRead;
    });
  }
}

const unbracketed = (host: string): string => (host.startsWith("[") ? host.slice(1, -1) : host);

/**
 * Resolves with the event that reports the connection. Closes the socket and rejects on an error and on
 * timeout; later errors are followed by "close".
 */
async function settled(socket: Socket, event: "connect" | "secureConnect", withinMs: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(
    () => reject(Object.assign(new Error("connect timed out"), { code: "ETIMEDOUT", syscall: "connect" })),
    withinMs,
  );
  const closed = (): void =>
    reject(Object.assign(new Error("the connection was closed"), { code: "ECONNRESET" }));
  socket.once(event, resolve).once("error", reject).once("close", closed);
  try {
    await promise;
    socket
      .on("error", () => {})
      .off("error", reject)
      .off("close", closed);
  } catch (error) {
    socket.on("error", () => {}).destroy();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

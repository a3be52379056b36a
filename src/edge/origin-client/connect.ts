import { peerTls } from "./peer-tls.ts";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls, createSecureContext, type SecureContext } from "node:tls";

/** TLS settings for connections to an origin. */
export interface OriginTls {
  servername: string;
  /** Whether the origin's certificate must be valid for `servername`. */
  isVerified: boolean;
}

/** The destination and local address of a pool's connections. */
export interface Destination {
  /** An allowed IP address: connections go to exactly this one. */
  address: string;
  port: number;
  tls: OriginTls | undefined;
  localAddress: string | undefined;
  /** CA certificates; undefined: those of Node. */
  ca: readonly string[] | undefined;
}

const keepAliveProbeMs = 60_000;

/** The receive buffer that all plain connections share. Received bytes are used or copied before the next read. */
const received = Buffer.allocUnsafeSlow(64 * 1024);

/**
 * Gets received bytes; `isOwned` is false where they must be copied to be kept. Returns false to stop reading until the
 * socket is resumed.
 */
export type Receive = (bytes: Buffer, length: number, isOwned: boolean) => boolean;

/** Opens connections to one destination. With TLS, later ones resume the session of an earlier one. */
export class Connector {
  readonly #to: Destination;
  #context: SecureContext | undefined;
  #session: Buffer | undefined;

  constructor(to: Destination) {
    this.#to = to;
  }

  /** Begins to connect. `ready` is called once requests can be sent. */
  connect(receive: Receive, ready: () => void): Socket {
    const { address: host, port, tls, localAddress } = this.#to;
    const options = {
      host,
      port,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: keepAliveProbeMs,
      ...(localAddress === undefined ? {} : { localAddress }),
    };
    if (tls === undefined) {
      const onread = { buffer: received, callback: (length: number) => receive(received, length, false) };
      return connectTcp({ ...options, onread }).once("connect", ready);
    }
    const socket = connectTls({
      ...options,
      ...peerTls,
      ALPNProtocols: ["http/1.1"],
      rejectUnauthorized: tls.isVerified,
      ...(tls.servername === "" ? {} : { servername: tls.servername }),
      ...this.#trust(),
      ...(this.#session === undefined ? {} : { session: this.#session }),
    });
    socket.on("session", (session) => (this.#session = session));
    socket.once("secureConnect", () => {
      socket.on("data", (chunk: Buffer) => {
        if (!receive(chunk, chunk.length, true)) socket.pause();
      });
      ready();
    });
    return socket;
  }

  /** Made once: reading all certificates costs milliseconds. */
  #trust(): { secureContext?: SecureContext } {
    const { ca } = this.#to;
    if (ca === undefined) return {};
    this.#context ??= createSecureContext({ ...peerTls, ca: [...ca] });
    return { secureContext: this.#context };
  }
}

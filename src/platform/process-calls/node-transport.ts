import { Agent, type Server } from "node:http";
import type { Duplex } from "node:stream";
import { connect, createServer, type TLSSocket } from "node:tls";
import { parseAddress } from "../config/config.ts";
import { listenAt, type ListenAt } from "../listen/listen.ts";
import type { CallTransport } from "./transport.ts";

/** The key of the installation, which is in its database, authenticates both sides, and connections are encrypted. */
const identity = "selvedge-node";
const ciphers = "ECDHE-PSK-CHACHA20-POLY1305";
const version = "TLSv1.2"; // the one with these ciphers
const connectMsMax = 2000;

/** No connection to a node could be made, so nothing was sent to it. */
export class NodeAbsent extends Error {}

/** Connects to the address of a node. */
type Open = (to: string, done: (error: Error | null, socket?: TLSSocket) => void) => void;

/** TLS between nodes that share a key. `socket`: where this node listens. */
export function nodeTransport(key: Buffer, socket: () => ListenAt): CallTransport {
  const secured = { ciphers, minVersion: version, maxVersion: version } as const;
  const open: Open = (to, done) => {
    const { host, port } = parseAddress(to)!;
    const tls = connect({
      ...secured,
      host,
      port,
      pskCallback: () => ({ identity, psk: key }),
      checkServerIdentity: () => undefined, // only a holder of the key completes the handshake
    });
    const late = setTimeout(() => tls.destroy(new Error("The other node does not answer")), connectMsMax);
    const failed = (error: Error): void => done(new NodeAbsent(error.message, { cause: error }));
    tls.once("error", failed);
    tls.once("close", () => clearTimeout(late));
    tls.once("secureConnect", () => {
      clearTimeout(late);
      tls.off("error", failed).setNoDelay(true).setKeepAlive(true, 10_000);
      done(null, tls);
    });
  };
  return {
    absentMsMax: 0,
    newAgent: () => new NodeAgent(open),
    addressOf: (to) => ({ host: to }),
    connect: async (to) =>
      new Promise((resolve, reject) => {
        open(to, (error, socket) => (error === null ? resolve(socket!) : reject(error)));
      }),
    async listen(server: Server) {
      const listener = createServer({
        ...secured,
        handshakeTimeout: connectMsMax,
        pskCallback: (_socket, given) => (given === identity ? key : null),
      });
      listener.on("secureConnection", (tls) => {
        tls.setNoDelay(true);
        server.emit("connection", tls);
      });
      listener.on("tlsClientError", (_error, tls) => tls.destroy());
      server.once("close", () => listener.close());
      await listenAt(listener, socket());
    },
  };
}

class NodeAgent extends Agent {
  readonly #open: Open;

  constructor(open: Open) {
    super({ keepAlive: true });
    this.#open = open;
  }

  override createConnection(
    { host }: { host?: string | null },
    done: (error: Error | null, stream: Duplex) => void,
  ): undefined {
    this.#open(host!, done as Parameters<Open>[1]);
  }

  /** Connections are kept by where they lead. */
  override getName({ host }: { host?: string | undefined } = {}): string {
    return host ?? "";
  }
}

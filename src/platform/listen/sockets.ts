import { createSocket, type Socket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { BoundSocket, isIP, isIPv6, type AddressInfo } from "node:net";
import { parseAddress } from "../config/config.ts";
import { during } from "./during.ts";
import type { Config } from "../config/settings.ts";
import type { ListenAt } from "./listen.ts";
import { openPassedUdp, type PassedSocket, type PassedSockets } from "./passed.ts";

/** The names of a node's listeners in error messages. */
const purposes = {
  apiListen: "management API",
  edgeListen: "edge, HTTP",
  edgeTlsListen: "edge, TLS",
  metricsListen: "metrics",
  healthListen: "health",
  nodeListen: "other nodes",
} as const;
export type ListenerName = keyof typeof purposes;

/**
 * Selects the sockets that a process binds. "all": those of every listener. "main": without those of the
 * edge. "edge": only those of the edge. "sockets": for the supervisor, all but the name server's, which it
 * binds with `holdDns`.
 */
export type NodePart = "all" | "main" | "edge" | "sockets";
const isOfEdge = (name: ListenerName): boolean => name === "edgeListen" || name === "edgeTlsListen";

/** The sockets of the name server: UDP and TCP on one port. */
export interface DnsSockets {
  tcp: ListenAt;
  /** A passed socket is opened only by the listener, so that datagrams wait in it until they can be answered. */
  udp: Socket | PassedSocket;
}

const attemptsMax = 20;

/**
 * The sockets of every configured listener. They are bound before anything else starts, so that a taken port
 * is known before the database is touched. A listener takes its socket when it starts.
 */
export class Sockets implements Disposable {
  readonly #bound = new Map<ListenerName, ListenAt>();
  readonly #closing = new DisposableStack();
  #dns: DnsSockets | undefined;

  /**
   * Binds the sockets of all listeners, except those that were passed. If one fails, binds none and throws an
   * error that names the address and the listener.
   */
  static async bind(config: Config, passed: PassedSockets, part: NodePart = "all"): Promise<Sockets> {
    using stack = new DisposableStack();
    const sockets = stack.use(new Sockets());
    for (const name of Object.keys(purposes) as ListenerName[]) {
      const address = config[name];
      if (
        address === undefined ||
        (part === "main" && isOfEdge(name)) ||
        (part === "edge" && !isOfEdge(name))
      )
        continue;
      const [given] = passed.get(name) ?? [];
      if (given !== undefined) {
        sockets.#bound.set(name, { fd: given.fd });
        continue;
      }
      const bound = await naming(
        address,
        purposes[name],
        async (host, port) => new BoundSocket({ host, port }),
      );
      sockets.#bound.set(name, sockets.#closing.use(bound));
    }
    if (part === "edge" || part === "sockets") {
      stack.move();
      return sockets;
    }
    const givenDns = passed.get("dnsListen");
    if (givenDns === undefined) {
      const dns = await naming(config.dnsListen, "name server", bindDns);
      sockets.#dns = dns;
      sockets.#closing.use(dns.tcp);
      sockets.#closing.defer(() => closeOnce(dns.udp));
    } else {
      const udp = givenDns.find(({ protocol }) => protocol === "udp")!;
      sockets.#dns = { tcp: { fd: givenDns.find(({ protocol }) => protocol === "tcp")!.fd }, udp };
    }
    stack.move();
    return sockets;
  }

  /** The socket of a configured listener. */
  take(name: ListenerName): ListenAt {
    return this.#bound.get(name)!;
  }

  get dns(): DnsSockets {
    return this.#dns!;
  }

  /** Closes the sockets that no listener has taken. */
  [Symbol.dispose](): void {
    this.#closing.dispose();
  }
}

/** Opens the datagram socket of the name server. Node reads it from now on. */
export const openUdp = async (udp: DnsSockets["udp"]): Promise<Socket> =>
  "fd" in udp ? openPassedUdp(udp) : udp;

/** Closes both sockets, for listeners that must open their own. Returns the address, which is free again. */
export function releaseDns({ tcp, udp }: DnsSockets): AddressInfo {
  if ("fd" in udp) throw new Error("Expected sockets of this process");
  const address = udp.address();
  if (tcp instanceof BoundSocket) tcp[Symbol.dispose]();
  closeOnce(udp);
  return address;
}

function closeOnce(socket: Socket): void {
  try {
    socket.close();
  } catch {
    // the listener has closed it
  }
}

/** Binds at an address. An error names the address and the listener. */
export async function naming<T>(
  address: string,
  purpose: string,
  bind: (host: string, port: number) => Promise<T>,
): Promise<T> {
  const { host, port } = parseAddress(address)!; // checked when the configuration was read
  const binding = async (): Promise<T> => bind(isIP(host) === 0 ? (await lookup(host)).address : host, port);
  return during(`listen on ${address} (${purpose})`, binding());
}

/** Port 0 selects a port that is free for both. */
export async function bindDns(host: string, port: number): Promise<{ tcp: BoundSocket; udp: Socket }> {
  for (let attempt = 1; ; attempt++) {
    const tcp = new BoundSocket({ host, port });
    try {
      return { tcp, udp: await bindUdp(host, tcp.address().port) };
    } catch (error) {
      tcp.close();
      if (port !== 0 || attempt >= attemptsMax) throw error;
    }
  }
}

/** With `isShared`, several threads can receive on one port, and the system distributes the clients. */
export async function bindUdp(address: string, port: number, isShared = false): Promise<Socket> {
  const socket = createSocket({
    reusePort: isShared,
    type: isIPv6(address) ? "udp6" : "udp4",
    // Addresses are always literal. The default lookup would cost one iteration of the event loop for each
    // packet.
    lookup: (name, _options, callback) => callback(null, name, isIPv6(name) ? 6 : 4),
  });
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.bind({ port, address, exclusive: true }, () => {
      socket.off("error", reject);
      resolve();
    });
  });
  return socket;
}

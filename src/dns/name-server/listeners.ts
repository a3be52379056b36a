import type { AddressInfo } from "node:net";
import { bindUdp, openUdp, type DnsSockets } from "../../platform/listen/sockets.ts";
import type { Authority } from "./authority.ts";
import type { SystemCalls } from "./udp/system-calls.ts";
import { TcpListener } from "./transport/tcp.ts";
import { BatchedUdpListener } from "./udp/udp-batches.ts";
import { UdpListener } from "./udp/udp.ts";

/** The sockets of one thread: TCP and UDP on one port. */
export class DnsListeners {
  readonly isBatched: boolean;
  readonly #tcp: TcpListener;
  readonly #udp: UdpListener;
  readonly #batched: BatchedUdpListener | undefined;

  /** With `calls`, datagrams are received and sent in batches. */
  constructor({ answering, transfers }: Authority, calls: SystemCalls | undefined) {
    this.isBatched = calls !== undefined;
    this.#tcp = new TcpListener(answering, (message, connection) => transfers.take(message, connection));
    this.#udp = new UdpListener(answering);
    if (calls !== undefined) this.#batched = new BatchedUdpListener(answering, calls);
  }

  /** Listens on bound sockets. */
  async listen({ tcp, udp }: DnsSockets): Promise<AddressInfo> {
    if (this.#batched === undefined) {
      await this.#tcp.listen(tcp);
      const socket = await openUdp(udp);
      this.#udp.listen(socket);
      return socket.address();
    }
    const socket = await openUdp(udp);
    const address = socket.address();
    await this.#tcp.listen(tcp);
    // Batches need a descriptor of their own.
    socket.close();
    await this.#batched.listen(address.address, address.port, false);
    return address;
  }

  /** Listens on a port that other threads listen on too. */
  async share({ address: host, port }: AddressInfo): Promise<void> {
    await this.#tcp.listen({ host, port, reusePort: true });
    if (this.#batched === undefined) this.#udp.listen(await bindUdp(host, port, true));
    else await this.#batched.listen(host, port, true);
  }

  async close(): Promise<void> {
    await Promise.all([this.#tcp.close(), this.#udp.close(), this.#batched?.close()]);
  }
}

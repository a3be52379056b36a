import type { AddressInfo } from "node:net";
import type { Authority } from "./authority.ts";
import type { SystemCalls } from "./udp/system-calls.ts";
import { TcpListener } from "./tcp.ts";
import { BatchedUdpListener } from "./udp/udp-batches.ts";
import { UdpListener } from "./udp/udp.ts";

const attemptsMax = 20;

/** The sockets of one thread: TCP and UDP on one port. */
export class Listeners {
  readonly isBatched: boolean;
  readonly #tcp: TcpListener;
  readonly #udp: UdpListener | BatchedUdpListener;

  /** With `calls`, datagrams are received and sent in batches. */
  constructor({ answering, transfers }: Authority, calls: SystemCalls | undefined) {
    this.isBatched = calls !== undefined;
    this.#tcp = new TcpListener(answering, (message, connection) => transfers.take(message, connection));
    this.#udp = calls === undefined ? new UdpListener(answering) : new BatchedUdpListener(answering, calls);
  }

  /**
   * Port 0 selects a port that is free for both. With `isShared`, other threads can listen on the same port.
   */
  async listen(host: string, port: number, isShared: boolean): Promise<AddressInfo> {
    for (let attempt = 1; ; attempt++) {
      const address = await this.#tcp.listen(host, port, isShared);
      try {
        await this.#udp.listen(address.address, address.port, isShared);
        return address;
      } catch (error) {
        await this.#tcp.close();
        if (port !== 0 || attempt >= attemptsMax) throw error;
      }
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#tcp.close(), this.#udp.close()]);
  }
}

import type { AddressInfo } from "node:net";
import type { Authority } from "./authority.ts";
import type { SystemCalls } from "./system-calls.ts";
import { TcpListener } from "./tcp.ts";
import { BatchedUdpListener } from "./udp-batches.ts";
import { UdpListener } from "./udp.ts";

const attemptsMax = 20;

/** Where one thread is asked: TCP and UDP on one port. */
export class Listeners {
  readonly isBatched: boolean;
  readonly #tcp: TcpListener;
  readonly #udp: UdpListener | BatchedUdpListener;

  /** With system calls, datagrams are taken in batches. */
  constructor({ answering, transfers }: Authority, calls: SystemCalls | undefined) {
    this.isBatched = calls !== undefined;
    this.#tcp = new TcpListener(answering, (message, connection) => transfers.take(message, connection));
    this.#udp = calls === undefined ? new UdpListener(answering) : new BatchedUdpListener(answering, calls);
  }

  /** A port of 0 takes one that is free for both; other threads may share it when `isShared`. */
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

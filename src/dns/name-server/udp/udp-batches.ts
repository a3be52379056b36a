import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { isIPv6, type AddressInfo } from "node:net";
import type { Answering } from "../answering.ts";
import { AF_INET, AF_INET6, batch, DatagramBatch, nameBytes, socketAddress } from "./datagram-batch.ts";
import type { DnsClient } from "../responder.ts";
import type { SystemCalls } from "./system-calls.ts";
import { plainAddress } from "../wire/address.ts";
import { udpBytesMax } from "../wire/constants.ts";
import { Awaited } from "../zone/flattening.ts";
import { clock } from "../../../platform/timers/clock.ts";

/** Limit on batches before control returns to the event loop. */
const roundsMax = 16;
const queryBytesMax = 4096;
const bufferBytes = 4 * 1024 * 1024;

// Constants of Linux.
const SOCK_DGRAM_CLOEXEC = 2 | 0o2000000;
const SOL_SOCKET = 1;
const SO_SNDBUF = 7;
const SO_RCVBUF = 8;
const SO_REUSEPORT = 15;
const MSG_DONTWAIT = 0x40;

/**
 * Answers datagrams in batches. The event loop delivers the first datagram of a batch, and system calls
 * receive the rest.
 */
export class BatchedUdpListener {
  readonly #answering: Answering;
  readonly #calls: SystemCalls;
  readonly #received: DatagramBatch;
  readonly #answers: DatagramBatch;
  #socket: Socket | undefined;
  #descriptor = -1;

  constructor(answering: Answering, calls: SystemCalls) {
    this.#answering = answering;
    this.#calls = calls;
    const names = Buffer.alloc(batch * nameBytes);
    this.#received = new DatagramBatch(calls, names, queryBytesMax);
    // Shares the names, so a response goes to the sender of the query at the same index.
    this.#answers = new DatagramBatch(calls, names, udpBytesMax);
  }

  async listen(host: string, port: number, isShared: boolean): Promise<AddressInfo> {
    const descriptor = this.#open(host, port, isShared);
    const socket = createSocket(isIPv6(host) ? "udp6" : "udp4");
    socket.on("message", (message, remote) => this.#take(message, remote));
    await new Promise<void>((resolve, reject) => {
      socket.once("error", reject);
      socket.bind({ fd: descriptor }, () => {
        socket.off("error", reject);
        resolve();
      });
    });
    socket.on("error", () => {}); // concerns only one packet
    this.#socket = socket;
    this.#descriptor = descriptor;
    return socket.address();
  }

  async close(): Promise<void> {
    const socket = this.#socket;
    this.#socket = undefined;
    if (socket !== undefined) await new Promise<void>((resolve) => socket.close(() => resolve()));
  }

  #open(host: string, port: number, isShared: boolean): number {
    const calls = this.#calls;
    const descriptor = calls.socket(isIPv6(host) ? AF_INET6 : AF_INET, SOCK_DGRAM_CLOEXEC, 0);
    const set = (option: number, value: number): void => {
      const bytes = Buffer.alloc(4);
      bytes.writeInt32LE(value);
      calls.setsockopt(descriptor, SOL_SOCKET, option, bytes, bytes.length); // the system may cap it
    };
    set(SO_RCVBUF, bufferBytes);
    set(SO_SNDBUF, bufferBytes);
    if (isShared) set(SO_REUSEPORT, 1);
    const name = socketAddress(host, port);
    if (descriptor >= 0 && calls.bind(descriptor, name, name.length) === 0) return descriptor;
    if (descriptor >= 0) calls.close(descriptor);
    throw Object.assign(new Error(`cannot listen for datagrams at ${host} port ${port}`), {
      code: "EADDRINUSE",
    });
  }

  /** Handles the datagram that the event loop has read, and those queued behind it. */
  #take(message: Buffer, { address, port }: RemoteInfo): void {
    const received = this.#received;
    let count = 0;
    if (message.length <= queryBytesMax && !address.includes("%"))
      received.store(count++, message, socketAddress(address, port));
    else this.#answerAlone(message, address, port);
    for (let round = 0; round < roundsMax && this.#socket !== undefined; round++) {
      const more = this.#calls.recvmmsg(
        this.#descriptor,
        received.from(count),
        batch - count,
        MSG_DONTWAIT,
        null,
      );
      count += Math.max(more, 0);
      if (count === 0) return;
      this.#answerAll(count);
      received.prepare(count);
      count = 0;
    }
  }

  #answerAlone(message: Buffer, address: string, port: number): void {
    const client = { address: plainAddress(address), isTcp: false };
    this.#answering.take(message, message.length, client, (answer) => {
      if (answer !== undefined) this.#socket?.send(answer, port, address, () => {});
    });
  }

  #answerAll(count: number): void {
    const takenMs = clock.now();
    let first = 0;
    for (let index = 0; index < count; index++) {
      const isAnswered = this.#answerOne(index, takenMs);
      if (isAnswered) continue;
      this.#send(first, index);
      first = index + 1;
    }
    this.#send(first, count);
  }

  /** Stores the response to a message at the same index. Returns false if there is none, or not yet. */
  #answerOne(index: number, takenMs: number): boolean {
    const received = this.#received;
    const port = received.port(index);
    if (port === 0 || received.isCut(index)) return false;
    const address = received.address(index);
    const message = received.bodies[index]!;
    const out = this.#answers.bodies[index]!;
    const client: DnsClient = { address, isTcp: false, takenMs, out, outBytes: 0 };
    const answer = this.#answering.answer(message, received.length(index), client);
    if (answer === undefined) return false;
    if (answer instanceof Awaited) {
      this.#answering.wait(answer, message, received.length(index), client, (late) => {
        if (late !== undefined) this.#socket?.send(late, port, address, () => {});
      });
      return false;
    }
    const bytes = answer === out ? client.outBytes! : answer.copy(out);
    this.#answers.fill(index, bytes, received.nameLength(index));
    return true;
  }

  #send(from: number, to: number): void {
    let next = from;
    while (next < to) {
      const sent = this.#calls.sendmmsg(this.#descriptor, this.#answers.from(next), to - next, MSG_DONTWAIT);
      // Skip the first one if it cannot be sent: its client is unreachable, or the system's buffer is full.
      // The client will retry.
      next += Math.max(sent, 1);
    }
  }
}

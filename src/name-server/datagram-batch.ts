import { isIPv6 } from "node:net";
import type { SystemCalls } from "./system-calls.ts";
import { addressBytes } from "./wire/address.ts";

/** Datagrams that one call takes or gives. */
export const batch = 64;
export const AF_INET = 2;
export const AF_INET6 = 10;
const MSG_TRUNC = 0x20;

// The layout on Linux with 64 bits: struct mmsghdr, struct iovec, and the larger of sockaddr_in and sockaddr_in6.
const headerBytes = 64;
const headerNameLength = 8;
const headerIovec = 16;
const headerIovecCount = 24;
const headerFlags = 48;
const headerLength = 56;
const iovecBytes = 16;
const iovecLength = 8;
export const nameBytes = 28;
const mappedPrefix = Buffer.from("00000000000000000000ffff", "hex");

/** The memory for a batch of datagrams, laid out as the system reads and writes it. It stays where it is. */
export class DatagramBatch {
  readonly headers = Buffer.alloc(batch * headerBytes);
  readonly bodies: readonly Buffer[];
  readonly #headersFrom: readonly Buffer[];
  readonly #names: Buffer;
  readonly #iovecs = Buffer.alloc(batch * iovecBytes);
  /** Held only so that it is not collected: the system knows it by its address. */
  readonly #memory: Buffer;

  constructor({ addressOf }: Pick<SystemCalls, "addressOf">, names: Buffer, bodyBytes: number) {
    this.#names = names;
    this.#memory = Buffer.alloc(batch * bodyBytes);
    this.bodies = slices(this.#memory, bodyBytes);
    this.#headersFrom = Array.from({ length: batch }, (_, index) =>
      this.headers.subarray(index * headerBytes),
    );
    for (let index = 0; index < batch; index++) {
      const header = index * headerBytes;
      const iovec = index * iovecBytes;
      this.headers.writeBigUInt64LE(addressOf(names) + BigInt(index * nameBytes), header);
      this.headers.writeBigUInt64LE(addressOf(this.#iovecs) + BigInt(iovec), header + headerIovec);
      this.headers.writeBigUInt64LE(1n, header + headerIovecCount);
      this.#iovecs.writeBigUInt64LE(addressOf(this.#memory) + BigInt(index * bodyBytes), iovec);
      this.#iovecs.writeBigUInt64LE(BigInt(bodyBytes), iovec + iovecLength);
    }
  }

  /** The system has put the lengths of names in; it needs the room that there is. */
  prepare(): void {
    for (let index = 0; index < batch; index++)
      this.headers.writeUInt32LE(nameBytes, index * headerBytes + headerNameLength);
  }

  from(index: number): Buffer {
    return this.#headersFrom[index]!;
  }

  length(index: number): number {
    return this.headers.readUInt32LE(index * headerBytes + headerLength);
  }

  isCut(index: number): boolean {
    return (this.headers.readInt32LE(index * headerBytes + headerFlags) & MSG_TRUNC) !== 0;
  }

  nameLength(index: number): number {
    return this.headers.readUInt32LE(index * headerBytes + headerNameLength);
  }

  port(index: number): number {
    return this.#names.readUInt16BE(index * nameBytes + 2);
  }

  /** The address, IPv4 as such where a socket of both families wraps it. */
  address(index: number): string {
    const at = index * nameBytes;
    const names = this.#names;
    if (names.readUInt16LE(at) === AF_INET) return dotted(names, at + 4);
    if (names.compare(mappedPrefix, 0, 12, at + 8, at + 20) === 0) return dotted(names, at + 20);
    const words = Array.from({ length: 8 }, (_, word) => names.readUInt16BE(at + 8 + word * 2).toString(16));
    const address = words.join(":");
    return address === "0:0:0:0:0:0:0:1" ? "::1" : address;
  }

  /** Puts a datagram in as if it had been received, with its sender's address. */
  place(index: number, datagram: Buffer, name: Buffer): void {
    const header = index * headerBytes;
    datagram.copy(this.bodies[index]!);
    name.copy(this.#names, index * nameBytes);
    this.headers.writeUInt32LE(name.length, header + headerNameLength);
    this.headers.writeUInt32LE(datagram.length, header + headerLength);
    this.headers.writeUInt32LE(0, header + headerFlags);
  }

  /** Puts a datagram in, for the address that is at the same place. */
  put(index: number, datagram: Buffer, nameLength: number): void {
    datagram.copy(this.bodies[index]!);
    this.#iovecs.writeUInt32LE(datagram.length, index * iovecBytes + iovecLength);
    this.headers.writeUInt32LE(nameLength, index * headerBytes + headerNameLength);
  }
}

const dotted = (bytes: Buffer, at: number): string =>
  `${bytes[at]}.${bytes[at + 1]}.${bytes[at + 2]}.${bytes[at + 3]}`;

const slices = (memory: Buffer, bytes: number): Buffer[] =>
  Array.from({ length: memory.length / bytes }, (_, index) =>
    memory.subarray(index * bytes, (index + 1) * bytes),
  );

/** struct sockaddr_in or sockaddr_in6. */
export function socketAddress(host: string, port: number): Buffer {
  const isV6 = isIPv6(host);
  const name = Buffer.alloc(isV6 ? nameBytes : 16);
  name.writeUInt16LE(isV6 ? AF_INET6 : AF_INET, 0);
  name.writeUInt16BE(port, 2);
  addressBytes(host).copy(name, isV6 ? 8 : 4);
  return name;
}

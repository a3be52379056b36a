import { isIPv6 } from "node:net";
import type { SystemCalls } from "./system-calls.ts";
import { addressBytes } from "../wire/address.ts";

/** Datagrams in one system call. */
export const batch = 64;
export const AF_INET = 2;
export const AF_INET6 = 10;
const MSG_TRUNC = 0x20;

// Sizes and offsets on 64-bit Linux: struct mmsghdr, struct iovec, and the larger of sockaddr_in and
// sockaddr_in6.
const headerBytes = 64;
const headerIovec = 16;
const headerIovecCount = 24;
const iovecBytes = 16;
const iovecLength = 8;
// The same in 32-bit words, for the fields that every datagram reads and writes.
const headerWords = headerBytes / 4;
const nameLengthWord = 2;
const flagsWord = 12;
const lengthWord = 14;
const iovecWords = iovecBytes / 4;
const iovecLengthWord = 2;
export const nameBytes = 28;
const addressesMax = 10_000;
const mappedPrefix = Buffer.from("00000000000000000000ffff", "hex");

/** Memory for a batch of datagrams, in the system's layout and at a fixed address. */
export class DatagramBatch {
  readonly headers = Buffer.alloc(batch * headerBytes);
  readonly bodies: readonly Buffer[];
  readonly #headersFrom: readonly Buffer[];
  readonly #names: Buffer;
  readonly #iovecs = Buffer.alloc(batch * iovecBytes);
  readonly #headerWords = wordsOf(this.headers);
  readonly #iovecWords = wordsOf(this.#iovecs);
  readonly #addresses = new Map<number, string>();
  /** Referenced only to prevent its collection: the system uses its address. */
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
    this.prepare(batch);
  }

  /**
   * Resets the lengths of the first `count` names to their capacity, which the system overwrites in each
   * call.
   */
  prepare(count: number): void {
    for (let index = 0; index < count; index++)
      this.#headerWords[index * headerWords + nameLengthWord] = nameBytes;
  }

  from(index: number): Buffer {
    return this.#headersFrom[index]!;
  }

  length(index: number): number {
    return this.#headerWords[index * headerWords + lengthWord]!;
  }

  isCut(index: number): boolean {
    return (this.#headerWords[index * headerWords + flagsWord]! & MSG_TRUNC) !== 0;
  }

  nameLength(index: number): number {
    return this.#headerWords[index * headerWords + nameLengthWord]!;
  }

  port(index: number): number {
    const at = index * nameBytes + 2;
    return (this.#names[at]! << 8) | this.#names[at + 1]!;
  }

  /** The sender's address. IPv4-mapped addresses are returned as IPv4. */
  address(index: number): string {
    const at = index * nameBytes;
    const names = this.#names;
    if (names[at] === AF_INET) return this.#dotted(at + 4);
    if (names.compare(mappedPrefix, 0, 12, at + 8, at + 20) === 0) return this.#dotted(at + 20);
    const words = Array.from({ length: 8 }, (_, word) => names.readUInt16BE(at + 8 + word * 2).toString(16));
    const address = words.join(":");
    return address === "0:0:0:0:0:0:0:1" ? "::1" : address;
  }

  /** Stores a datagram and its sender's address as if the system had received them here. */
  store(index: number, datagram: Buffer, name: Buffer): void {
    const header = index * headerWords;
    datagram.copy(this.bodies[index]!);
    name.copy(this.#names, index * nameBytes);
    this.#headerWords[header + nameLengthWord] = name.length;
    this.#headerWords[header + lengthWord] = datagram.length;
    this.#headerWords[header + flagsWord] = 0;
  }

  /** Sets the lengths of the datagram and of the address at an index. */
  fill(index: number, bytes: number, nameLength: number): void {
    this.#iovecWords[index * iovecWords + iovecLengthWord] = bytes;
    this.#headerWords[index * headerWords + nameLengthWord] = nameLength;
  }

  /** Caches addresses as text, because the same resolvers send most queries. */
  #dotted(at: number): string {
    const names = this.#names;
    const number = (names[at]! << 24) | (names[at + 1]! << 16) | (names[at + 2]! << 8) | names[at + 3]!;
    let address = this.#addresses.get(number);
    if (address === undefined) {
      address = `${names[at]}.${names[at + 1]}.${names[at + 2]}.${names[at + 3]}`;
      if (this.#addresses.size >= addressesMax) this.#addresses.clear();
      this.#addresses.set(number, address);
    }
    return address;
  }
}

const wordsOf = (bytes: Buffer): Uint32Array =>
  new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);

const slices = (memory: Buffer, bytes: number): Buffer[] =>
  Array.from({ length: memory.length / bytes }, (_, index) =>
    memory.subarray(index * bytes, (index + 1) * bytes),
  );

/** The bytes of a struct sockaddr_in or sockaddr_in6. */
export function socketAddress(host: string, port: number): Buffer {
  const isV6 = isIPv6(host);
  const name = Buffer.alloc(isV6 ? nameBytes : 16);
  name.writeUInt16LE(isV6 ? AF_INET6 : AF_INET, 0);
  name.writeUInt16BE(port, 2);
  addressBytes(host).copy(name, isV6 ? 8 : 4);
  return name;
}

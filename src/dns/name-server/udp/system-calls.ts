import { endianness } from "node:os";

/** The system calls for batches of datagrams. They return a negative number on failure. */
export interface SystemCalls {
  socket(family: number, type: number, protocol: number): number;
  setsockopt(socket: number, level: number, option: number, value: Buffer, bytes: number): number;
  bind(socket: number, address: Buffer, bytes: number): number;
  close(socket: number): number;
  recvmmsg(socket: number, headers: Buffer, count: number, flags: number, timeout: null): number;
  sendmmsg(socket: number, headers: Buffer, count: number, flags: number): number;
  /** A buffer's address in memory. Keep a reference to the buffer for as long as the system may use it. */
  addressOf(buffer: Buffer): bigint;
}

const int = "int32";
const uint = "uint32";
const pointer = "pointer";

/**
 * Loads the system calls; undefined if the runtime cannot make them. They need Node 26 or later on 64-bit
 * Linux, and the permission to use FFI.
 */
export async function loadSystemCalls(): Promise<SystemCalls | undefined> {
  // The structures are laid out for 64-bit little-endian systems.
  if (process.platform !== "linux" || !["x64", "arm64"].includes(process.arch) || endianness() !== "LE")
    return undefined;
  try {
    const ffi = await import("node:ffi");
    const { functions } = ffi.dlopen(null, {
      socket: { arguments: [int, int, int], return: int },
      setsockopt: { arguments: [int, int, int, pointer, uint], return: int },
      bind: { arguments: [int, pointer, uint], return: int },
      close: { arguments: [int], return: int },
      recvmmsg: { arguments: [int, pointer, uint, int, pointer], return: int },
      sendmmsg: { arguments: [int, pointer, uint, int], return: int },
    });
    return { ...functions, addressOf: (buffer) => ffi.getRawPointer(buffer) };
  } catch {
    return undefined;
  }
}

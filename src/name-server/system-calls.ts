import { endianness } from "node:os";

/** The system calls that take and give many datagrams at once. Those that fail return a negative number. */
export interface SystemCalls {
  socket(family: number, type: number, protocol: number): number;
  setsockopt(socket: number, level: number, option: number, value: Buffer, bytes: number): number;
  bind(socket: number, address: Buffer, bytes: number): number;
  close(socket: number): number;
  recvmmsg(socket: number, headers: Buffer, count: number, flags: number, timeout: null): number;
  sendmmsg(socket: number, headers: Buffer, count: number, flags: number): number;
  /** Where a buffer is in memory: it must be held for as long as the system may look there. */
  addressOf(buffer: Buffer): bigint;
}

const int = "int32";
const uint = "uint32";
const pointer = "pointer";

/** The calls, where the runtime can make them: Node 26 or later on Linux, if it is not forbidden to. */
export async function loadSystemCalls(): Promise<SystemCalls | undefined> {
  // The layout of the structures is that of 64-bit systems.
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

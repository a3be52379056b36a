import { spawn } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { unawaited } from "../platform/util/uncaught.ts";

/** Sends a state to the service manager: lines such as `READY=1`, see sd_notify(3). */
export type Notify = (state: string) => void;

/**
 * Talks to the service manager that started this program (`NOTIFY_SOCKET`). Without one, nothing is sent. Sends
 * WATCHDOG=1 from the main loop if the service manager wants it (`WATCHDOG_USEC`).
 */
export async function connectServiceManager(logger: Pick<Logger, "warn">): Promise<Notify> {
  const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: watchdogUs, WATCHDOG_PID: watchdogPid } = process.env;
  // Children are not this service.
  for (const name of ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"]) delete process.env[name];
  if (socket === undefined || !/^[/@]./.test(socket)) return () => {};
  const send = (await datagrams(socket)) ?? ((state: string) => throughProgram(socket, state));
  const notify = (state: string): void => {
    unawaited(
      (async () => send(state))().catch((error: unknown) =>
        logger.warn({ err: error, state }, "the service manager could not be notified"),
      ),
    );
  };
  const isWatched = watchdogUs !== undefined && Number(watchdogUs) > 0;
  if (isWatched && (watchdogPid === undefined || Number(watchdogPid) === process.pid))
    setInterval(() => notify("WATCHDOG=1"), Number(watchdogUs) / 1000 / 3).unref();
  return notify;
}

/** For `Type=notify-reload`, which compares the time with that of its signal. */
export const reloadingState = (): string => `RELOADING=1\nMONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`;

const unixFamily = 1;
const datagramType = 2;
const closeOnExec = 0o2000000;
/** MSG_NOSIGNAL and MSG_DONTWAIT: a service manager that reads slowly must not block the main loop. */
const flags = 0x4000 | 0x40;
const attemptsMax = 50;
const againMs = 100;

/** Sends datagrams with a system call, because Node has no datagrams over Unix sockets. Undefined without FFI. */
async function datagrams(socket: string): Promise<((state: string) => Promise<void>) | undefined> {
  if (process.platform !== "linux") return undefined;
  const system = await loadCalls();
  if (system === undefined) return undefined;
  // struct sockaddr_un: the family, and the path; an abstract name begins with a zero byte and has none at its end.
  const path = Buffer.from(socket.startsWith("@") ? `\0${socket.slice(1)}` : `${socket}\0`);
  const address = Buffer.alloc(2 + path.length);
  new Uint16Array(address.buffer, address.byteOffset, 1)[0] = unixFamily;
  path.copy(address, 2);
  const isTaken = (message: Buffer): boolean => {
    const descriptor = system.socket(unixFamily, datagramType | closeOnExec, 0);
    const sent = system.sendto(descriptor, message, BigInt(message.length), flags, address, address.length);
    system.close(descriptor);
    return Number(sent) === message.length;
  };
  return async (state) => {
    const message = Buffer.from(state);
    for (let attempt = 1; !isTaken(message); attempt++) {
      if (attempt === attemptsMax)
        throw new Error(`the service manager did not read the message at ${socket}`);
      await delay(againMs, undefined, { ref: false });
    }
  };
}

interface Calls {
  socket(family: number, type: number, protocol: number): number;
  sendto(
    socket: number,
    message: Buffer,
    bytes: bigint,
    flags: number,
    address: Buffer,
    addressBytes: number,
  ): bigint | number;
  close(socket: number): number;
}

async function loadCalls(): Promise<Calls | undefined> {
  // Operators cannot do anything about the warning that FFI is experimental.
  const emitWarning = process.emitWarning.bind(process);
  process.emitWarning = () => {};
  try {
    const ffi = await import("node:ffi");
    const { functions } = ffi.dlopen(null, {
      socket: { arguments: ["int32", "int32", "int32"], return: "int32" },
      sendto: {
        arguments: ["int32", "pointer", "uint64", "int32", "pointer", "uint32"],
        return: "int64",
      },
      close: { arguments: ["int32"], return: "int32" },
    });
    return functions;
  } catch {
    return undefined;
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** The unit then needs `NotifyAccess=all`, because the message comes from another process. */
async function throughProgram(socket: string, state: string): Promise<void> {
  const child = spawn("systemd-notify", state.split("\n"), {
    env: { ...process.env, NOTIFY_SOCKET: socket },
    stdio: "ignore",
  });
  await new Promise<void>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) =>
      code === 0 ? resolve() : reject(new Error(`systemd-notify exited with ${code}`)),
    );
  });
}

import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { serve, temporaryFolder } from "../helpers/process.ts";

/** The datagrams that arrive at a Unix socket, with system calls, because Node has no such sockets. */
async function receiver(path: string): Promise<() => string[]> {
  const ffi = await import("node:ffi");
  const { functions } = ffi.dlopen(null, {
    socket: { arguments: ["int32", "int32", "int32"], return: "int32" },
    bind: { arguments: ["int32", "pointer", "uint32"], return: "int32" },
    recv: { arguments: ["int32", "pointer", "uint64", "int32"], return: "int64" },
    close: { arguments: ["int32"], return: "int32" },
  });
  const socket = functions.socket(1, 2 | 0o2000000, 0);
  onTestFinished(() => void functions.close(socket));
  const name = Buffer.from(path.startsWith("@") ? `\0${path.slice(1)}` : `${path}\0`);
  const address = Buffer.concat([Buffer.from(new Uint16Array([1]).buffer), name]);
  expect(functions.bind(socket, address, address.length)).toBe(0);
  const received: string[] = [];
  const buffer = Buffer.alloc(4096);
  return () => {
    for (;;) {
      const size = Number(functions.recv(socket, buffer, BigInt(buffer.length), 0x40)); // MSG_DONTWAIT
      if (size < 0) return received;
      received.push(buffer.toString("latin1", 0, size));
    }
  };
}

it.each(["a path", "an abstract name"])(
  "tells the service manager at %s what it does, and that its loop runs",
  async (kind) => {
    const path = join(temporaryFolder(), "notify");
    const socket = kind === "a path" ? path : `@${path}`;
    const received = await receiver(socket);
    const server = await serve(["--ephemeral"], { NOTIFY_SOCKET: socket, WATCHDOG_USEC: "90000" });
    const has = (pattern: RegExp): boolean => received().some((state) => pattern.test(state));
    await vi.waitFor(() => expect(has(/^READY=1$/)).toBe(true));
    await vi.waitFor(() => expect(has(/^WATCHDOG=1$/)).toBe(true));
    server.process.kill("SIGHUP");
    await vi.waitFor(() => expect(has(/^RELOADING=1\nMONOTONIC_USEC=\d+$/)).toBe(true));
    await vi.waitFor(() => expect(received().filter((state) => state === "READY=1")).toHaveLength(2));
    server.process.kill("SIGUSR1");
    await vi.waitFor(() => expect(server.stderr()).toContain("SIGUSR1 is ignored"));
    server.process.kill("SIGTERM");
    expect(await server.exited).toBe(0);
    expect(
      received()
        .filter((state) => state !== "WATCHDOG=1")
        .at(-1),
    ).toBe("STOPPING=1");
    expect(server.stderr()).not.toMatch(/inspector|Debugger|ExperimentalWarning|could not be notified/);
    expect(existsSync(path)).toBe(kind === "a path");
  },
);

it("a service manager that is not there does not keep the node from its work", async () => {
  const server = await serve(["--ephemeral"], { NOTIFY_SOCKET: join(temporaryFolder(), "none") });
  await vi.waitFor(() => expect(server.stderr()).toContain("could not be notified"));
  server.process.kill("SIGTERM");
  expect(await server.exited).toBe(0);
});

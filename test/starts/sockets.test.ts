import { spawn, spawnSync } from "node:child_process";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { Resolver } from "node:dns/promises";
import { BoundSocket } from "node:net";
import { expect, it, onTestFinished, vi } from "vitest";
import { freePort } from "../helpers/free-port.ts";
import { serve } from "../helpers/process.ts";
import { callerOf } from "../helpers/writes.ts";

const token = "owner-token-for-tests";
const hasActivation = spawnSync("systemd-socket-activate", ["--version"]).status === 0;

it.skipIf(!hasActivation)("takes the sockets of systemd-socket-activate by their names", async () => {
  const [api, edge, health] = [await freePort(), await freePort(), await freePort()];
  const sockets = [api, edge, health].flatMap((port) => ["-l", `127.0.0.1:${port}`]);
  const starting = serve(["--ephemeral", "--api-token", token], {}, [
    ...["systemd-socket-activate", ...sockets, "--fdname=api:edge:health"],
  ]);
  // systemd starts the program at the first connection, which it then answers.
  const answer = await vi.waitFor(() => fetch(`http://127.0.0.1:${edge}/`));
  expect(answer.status).toBeGreaterThanOrEqual(400); // an unknown host
  const { ready, process, exited } = await starting;
  expect(ready).toMatchObject({
    api: `http://127.0.0.1:${api}/client/v4`,
    edge: `http://127.0.0.1:${edge}`,
  });
  expect((await fetch(`http://127.0.0.1:${health}/readyz`)).status).toBe(200);
  process.kill("SIGTERM");
  expect(await exited).toBe(0);
});

/** The descriptor of a datagram socket, from which this process reads no more. Node does not say it. */
function descriptorOf(socket: Socket): number {
  const state = Object.getOwnPropertySymbols(socket).find(
    ({ description }) => description === "state symbol",
  )!;
  const { handle } = (socket as unknown as Record<symbol, { handle: { fd: number; recvStop: () => void } }>)[
    state
  ]!;
  handle.recvStop();
  return handle.fd;
}

/** `serve` with sockets of this process as its descriptors from 3 on. */
function launch(names: string, descriptors: number[], ...args: string[]): ReturnType<typeof spawn> {
  const command = `LISTEN_PID=$$ LISTEN_FDS=${descriptors.length} LISTEN_FDNAMES=${names} exec "$0" "$@"`;
  const child = spawn(
    "/bin/sh",
    [
      "-c",
      command,
      process.execPath,
      "bin/selvedge.js",
      "serve",
      "--ephemeral",
      "--api-token",
      token,
      ...args,
    ],
    { stdio: ["ignore", "pipe", "pipe", ...descriptors] },
  );
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

/** Sockets as a service manager has them: they listen, and it accepts nothing. Only a system call does the one alone. */
async function passable(): Promise<{
  tcp: (host: string) => BoundSocket;
  dns: () => Promise<[number, number, number]>;
}> {
  const ffi = await import("node:ffi");
  const { functions } = ffi.dlopen(null, { listen: { arguments: ["int32", "int32"], return: "int32" } });
  const tcp = (host: string): BoundSocket => {
    const bound = new BoundSocket({ host, port: 0 });
    expect(functions.listen(bound.fd(), 128)).toBe(0);
    onTestFinished(() => bound.close());
    return bound;
  };
  return {
    tcp,
    async dns() {
      const stream = tcp("127.0.0.1");
      const { port } = stream.address();
      const datagrams = createSocket("udp4").bind(port, "127.0.0.1");
      await once(datagrams, "listening");
      onTestFinished(() => void datagrams.close());
      return [stream.fd(), descriptorOf(datagrams), port];
    },
  };
}

it("answers DNS over passed sockets, TCP and UDP, beside listeners of its own", async () => {
  const { tcp, dns } = await passable();
  const [stream, datagrams, dnsPort] = await dns();
  const api = tcp("::1");
  const edge = await freePort();
  const child = launch("dns:api:dns", [datagrams, api.fd(), stream], "--edge-listen", `127.0.0.1:${edge}`);
  let printed = "";
  child.stdout!.on("data", (chunk: Buffer) => (printed += chunk.toString()));
  await vi.waitFor(() => expect(printed).toContain("API token"));
  const call = callerOf(`http://[::1]:${api.address().port}/client/v4`);
  const zone = (await call("POST", "/zones", { name: "passed.example" })).result as { id: string };
  const text = "x".repeat(200);
  for (const n of [1, 2, 3, 4, 5, 6, 7, 8])
    await call("POST", `/zones/${zone.id}/dns_records`, {
      type: "TXT",
      name: "t",
      content: `"${n}${text}"`,
    });
  const resolver = new Resolver();
  resolver.setServers([`127.0.0.1:${dnsPort}`]);
  // More than fits into a datagram: the resolver repeats the query over TCP.
  expect(await resolver.resolveTxt("t.passed.example")).toHaveLength(8);
  expect((await resolver.resolveSoa("passed.example")).nsname).not.toBe("");
  expect((await fetch(`http://127.0.0.1:${edge}/`)).status).toBeGreaterThanOrEqual(400);
  child.kill("SIGTERM");
  expect((await once(child, "exit"))[0]).toBe(0);
});

it("refuses sockets that no listener can take", async () => {
  const { tcp, dns } = await passable();
  const [one, other] = [tcp("127.0.0.1"), tcp("127.0.0.1")];
  const [stream, datagrams] = await dns();
  const refusalOf = async (names: string, descriptors: number[], ...args: string[]): Promise<string> => {
    const child = launch(names, descriptors, ...args);
    let errors = "";
    child.stderr!.on("data", (chunk: Buffer) => (errors += chunk.toString()));
    expect((await once(child, "exit"))[0]).toBe(1);
    return errors;
  };
  expect(await refusalOf("web", [one.fd()])).toContain('but received "web"');
  expect(await refusalOf("api:api", [one.fd(), other.fd()])).toContain("of api but received tcp, tcp");
  expect(await refusalOf("dns", [stream])).toContain("of dns but received tcp");
  expect(await refusalOf("edge", [datagrams])).toContain("of edge but received udp");
  expect(await refusalOf("dns:dns", [stream, datagrams], "--dns-threads", "2")).toContain("--dns-threads 0");
});

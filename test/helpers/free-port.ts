import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";

/**
 * A port on 127.0.0.1 that is free for TCP and UDP, for programs whose port must be set. It lies below the ports
 * that the system gives to outgoing connections, which would otherwise take it before the program does.
 */
export async function freePort(): Promise<number> {
  const [low = 32_768] = readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8")
    .split(/\s/)
    .map(Number);
  const first = 10_000;
  for (;;) {
    const port = first + Math.floor(Math.random() * (low - first));
    if (!given.has(port) && (await isFree(port))) {
      given.add(port);
      return port;
    }
  }
}

const given = new Set<number>();

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const socket = createSocket("udp4");
  try {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    socket.bind(port, "127.0.0.1");
    await once(socket, "listening");
    return true;
  } catch {
    return false;
  } finally {
    server.close();
    socket.close();
  }
}

import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { ConfigError } from "../config/config.ts";
import type { Config } from "../config/settings.ts";

/** The listeners whose sockets a service manager can pass, by the names of the sockets (`LISTEN_FDNAMES`). */
const settingsByName = {
  api: "apiListen",
  edge: "edgeListen",
  "edge-tls": "edgeTlsListen",
  metrics: "metricsListen",
  health: "healthListen",
  nodes: "nodeListen",
  dns: "dnsListen",
} as const satisfies Record<string, keyof Config>;
type Name = keyof typeof settingsByName;
export type PassedListener = (typeof settingsByName)[Name];

/** A bound socket, by its descriptor. */
export interface PassedSocket {
  fd: number;
  protocol: "tcp" | "udp";
  isIPv6: boolean;
  /** Host and port. */
  address: string;
}

/** Passed sockets by the setting of their listener. The name server has two. */
export type PassedSockets = ReadonlyMap<PassedListener, readonly PassedSocket[]>;

const firstDescriptor = 3;

/**
 * The sockets that a service manager has passed to this process: descriptors from 3 on, see sd_listen_fds(3).
 * `known` has the addresses of sockets that are bound but do not listen yet, which the system does not
 * report. Removes the variables, which are for this process only. Throws ConfigError for sockets that no
 * listener can take.
 */
export function takePassedSockets(
  environment: NodeJS.ProcessEnv,
  known: Partial<Config> = {},
): PassedSockets {
  const { LISTEN_FDS: count, LISTEN_PID: pid, LISTEN_FDNAMES: names = "" } = environment;
  for (const name of ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"]) delete environment[name];
  const passed = new Map<PassedListener, PassedSocket[]>();
  if (count === undefined || !isForThisProcess(pid)) return passed;
  const given = names.split(":");
  for (let index = 0; index < Number(count); index++) {
    const name = given[index] ?? "";
    if (!Object.hasOwn(settingsByName, name))
      throw new ConfigError(
        `Expected ${Object.keys(settingsByName).join(", ")} as the name of a passed socket (FileDescriptorName=) but received "${name}"`,
      );
    const setting = settingsByName[name as Name];
    const fd = firstDescriptor + index;
    const address = known[setting];
    // The supervisor passes the name server's socket of TCP first.
    const protocol = setting === "dnsListen" && passed.has(setting) ? "udp" : "tcp";
    const socket = address === undefined ? socketOf(fd, name) : socketAt(fd, address, protocol);
    passed.set(setting, [...(passed.get(setting) ?? []), socket]);
  }
  for (const [setting, sockets] of passed) check(setting, sockets);
  return passed;
}

/** Sockets may be passed to the parent process, because bin/selvedge.js can start the program under another Node. */
const isForThisProcess = (pid: string | undefined): boolean =>
  Number(pid) === process.pid || (process.channel !== undefined && Number(pid) === process.ppid);

function check(setting: PassedListener, sockets: readonly PassedSocket[]): void {
  const protocols = sockets.map(({ protocol }) => protocol).toSorted();
  const wanted = setting === "dnsListen" ? ["tcp", "udp"] : ["tcp"];
  if (protocols.join() !== wanted.join())
    throw new ConfigError(
      `Expected ${wanted.join(" and ")} as the passed sockets of ${nameOf(setting)} but received ${protocols.join(", ")}`,
    );
  if (new Set(sockets.map(({ address }) => address)).size > 1)
    throw new ConfigError(`Expected one address for the passed sockets of ${nameOf(setting)}`);
}

/** The name under which a listener's socket is passed. */
export const nameOf = (setting: PassedListener): string =>
  Object.entries(settingsByName).find(([, each]) => each === setting)![0];

/** The configuration with the addresses of the passed sockets in place of its own. */
export function withPassed(config: Config, passed: PassedSockets): Config {
  if (passed.has("dnsListen") && (config.dnsThreads > 0 || config.dnsUdp === "batched"))
    throw new ConfigError(
      "Expected --dns-threads 0 and --dns-udp single with passed sockets for DNS: threads and batches open their own",
    );
  const addresses = [...passed].map(([setting, sockets]) => [setting, sockets[0]!.address]);
  return { ...config, ...(Object.fromEntries(addresses) as Partial<Config>) };
}

/** A datagram socket from its descriptor. */
export async function openPassedUdp({ fd, isIPv6 }: PassedSocket): Promise<Socket> {
  const socket = createSocket({
    type: isIPv6 ? "udp6" : "udp4",
    // Addresses are always literal.
    lookup: (name, _options, callback) => callback(null, name, isIPv6 ? 6 : 4),
  });
  const listening = once(socket, "listening");
  socket.bind({ fd, exclusive: true });
  await listening;
  return socket;
}

const socketAt = (fd: number, address: string, protocol: PassedSocket["protocol"]): PassedSocket => ({
  fd,
  protocol,
  isIPv6: address.startsWith("["),
  address,
});

/** The descriptor of a datagram socket, from /proc, because Node does not expose it. Undefined without /proc. */
export function descriptorOfUdp({ address, port }: { address: string; port: number }): number | undefined {
  const wanted = address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
  const all = namesIn("/proc/self/fd").map(Number);
  return all.find((fd) => {
    const socket = knownSocket(fd);
    return socket?.protocol === "udp" && socket.address === wanted;
  });
}

function socketOf(fd: number, name: string): PassedSocket {
  const socket = knownSocket(fd);
  if (socket !== undefined) return socket;
  throw new ConfigError(
    `Expected a TCP or UDP socket in the network namespace of this process for the passed descriptor ${fd} (${name})`,
  );
}

/** Reads /proc, because Node exposes neither the protocol nor the address of a descriptor before it is used. */
function knownSocket(fd: number): PassedSocket | undefined {
  const inode = /^socket:\[(\d+)\]$/.exec(linkOf(fd))?.[1];
  if (inode === undefined) return undefined;
  for (const protocol of ["tcp", "udp"] as const)
    for (const isIPv6 of [false, true])
      for (const line of linesOf(`/proc/self/net/${protocol}${isIPv6 ? "6" : ""}`)) {
        const fields = line.trim().split(/\s+/);
        if (fields[9] === inode) return { fd, protocol, isIPv6, address: addressOf(fields[1]!) };
      }
  return undefined;
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // another system
  }
}

function linkOf(fd: number): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return "";
  }
}

function linesOf(path: string): string[] {
  try {
    return readFileSync(path, "latin1").split("\n");
  } catch {
    return []; // a system without IPv6
  }
}

/** Parses the format of /proc/net: words of four bytes in the machine's byte order, and the port. */
function addressOf(text: string): string {
  const [words = "", port = ""] = text.split(":");
  const bytes = (words.match(/.{8}/g) ?? []).flatMap((word) => (word.match(/../g) ?? []).toReversed());
  if (bytes.length === 4)
    return `${bytes.map((byte) => Number.parseInt(byte, 16)).join(".")}:${Number.parseInt(port, 16)}`;
  const groups = bytes.join("").match(/.{4}/g) ?? [];
  const host = new URL(`http://[${groups.join(":")}]`).hostname;
  return `${host}:${Number.parseInt(port, 16)}`;
}

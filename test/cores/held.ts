import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/**
 * The ports of clients whose connections to a port of this machine a process holds. A process that has ended holds
 * none.
 */
export function portsHeld(pid: number, listenerPort: number): Set<number> {
  const inodes = new Set<string>();
  try {
    for (const fd of readdirSync(`/proc/${pid}/fd`)) {
      const inode = /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/${pid}/fd/${fd}`))?.[1];
      if (inode !== undefined) inodes.add(inode);
    }
    const held = new Set<number>();
    for (const line of readFileSync(`/proc/${pid}/net/tcp`, "latin1").split("\n").slice(1)) {
      const [, local, remote, state, , , , , , inode] = line.trim().split(/\s+/);
      if (inode === undefined || state === listening || !inodes.has(inode)) continue;
      if (portOf(local!) === listenerPort) held.add(portOf(remote!));
    }
    return held;
  } catch {
    return new Set();
  }
}

/** The state of a socket that listens, which every edge process has from its start. */
const listening = "0A";

const portOf = (address: string): number => Number.parseInt(address.split(":")[1]!, 16);

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return ""; // closed meanwhile
  }
}

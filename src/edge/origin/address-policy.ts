import { BlockList, isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { LRUCache } from "lru-cache";
import { formatIp, ipBytes, parseIp } from "../../rules/values/ip.ts";
import type { IpValue } from "../../rules/values/types.ts";
import { entriesMax } from "../../platform/util/loading-cache.ts";

/**
 * Requests that may reach loopback and private addresses: none; those to zones' origins; also scripts'
 * fetches.
 */
export type PrivateNetworks = "deny" | "origins" | "all";
/** The initiator of a connection: a zone's record, a script's fetch, or a script's socket. */
export type Who = "origin" | "script" | "socket";
export type Verdict = "allowed" | "private" | "own_listener" | "invalid";

/**
 * Not reachable from outside: the IANA special-purpose registries, which include clouds' metadata addresses.
 */
const special: readonly [network: string, length: number][] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
  ["::", 128],
  ["::1", 128],
  ["64:ff9b:1::", 48],
  ["100::", 64],
  ["2001::", 23],
  ["2001:db8::", 32],
  ["3fff::", 20],
  ["5f00::", 16],
  ["fc00::", 7],
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8],
];
const specialList = new BlockList();
for (const [network, length] of special)
  specialList.addSubnet(network, length, isIP(network) === 4 ? "ipv4" : "ipv6");

/** Decides on addresses when a connection is made, so that a name whose address changes cannot bypass it. */
export class AddressPolicy {
  readonly #privateNetworks: PrivateNetworks;
  readonly #ownPorts = new Set<number>();
  readonly #edgePorts = new Set<number>();
  /** By address as written: parsing it and checking the list takes microseconds, on every request. */
  readonly #known = new LRUCache<string, KnownAddress>(entriesMax(10_000));

  constructor(privateNetworks: PrivateNetworks) {
    this.#privateNetworks = privateNetworks;
  }

  /** Forbids a listener of this node (API, DNS, control) for all connections. No setting permits it. */
  forbidListener(port: number): void {
    this.#ownPorts.add(port);
  }

  /** Forbids a listener of the edge for sockets. Requests are allowed, because they carry a hop count. */
  forbidSockets(port: number): void {
    this.#edgePorts.add(port);
  }

  check(address: string, port: number, who: Who): Verdict {
    const known = this.#knownAddress(address);
    if (known === undefined) return "invalid";
    const isOwn = this.#ownPorts.has(port) || (who === "socket" && this.#edgePorts.has(port));
    if (isOwn && isThisMachine(known.canonical)) return "own_listener";
    if (!known.isSpecial) return "allowed";
    const isOpen =
      this.#privateNetworks === "all" || (this.#privateNetworks === "origins" && who === "origin");
    return isOpen ? "allowed" : "private";
  }

  #knownAddress(address: string): KnownAddress | undefined {
    let known = this.#known.get(address);
    if (known === undefined) {
      const plain = canonical(address);
      if (plain === undefined) return undefined;
      const isSpecial = specialList.check(plain, isIP(plain) === 4 ? "ipv4" : "ipv6");
      this.#known.set(address, (known = { canonical: plain, isSpecial }));
    }
    return known;
  }
}

interface KnownAddress {
  canonical: string;
  isSpecial: boolean;
}

/**
 * The canonical form of an address: IPv4 for an IPv6 address that embeds one. Undefined for invalid addresses
 * and those with a scope.
 */
function canonical(address: string): string | undefined {
  if (isIP(address) === 4) return address;
  const ip = parseIp(address);
  return ip === undefined ? undefined : (embeddedIPv4(wordsOf(ip)) ?? formatIp(ip));
}

/** The IPv4 address inside an IPv6 one: mapped, compatible, translated, NAT64 or 6to4. */
function embeddedIPv4(words: readonly number[]): string | undefined {
  const last = ([high, low]: readonly number[]): string =>
    [high! >> 8, high! & 255, low! >> 8, low! & 255].join(".");
  if (words.slice(0, 4).every((word) => word === 0)) {
    const [, , , , fourth, fifth, sixth, seventh] = words;
    const isMapped = fourth === 0 && fifth === 0xffff;
    const isTranslated = fourth === 0xffff && fifth === 0;
    const isCompatible = fourth === 0 && fifth === 0 && !(sixth === 0 && seventh! <= 1);
    if (isMapped || isTranslated || isCompatible) return last(words.slice(6));
  }
  if (words[0] === 0x64 && words[1] === 0xff9b && words.slice(2, 6).every((word) => word === 0))
    return last(words.slice(6));
  if (words[0] === 0x2002) return last(words.slice(1, 3));
  return undefined;
}

function wordsOf(ip: IpValue): number[] {
  const bytes = ipBytes(ip);
  return Array.from({ length: bytes.length / 2 }, (_, index) => bytes.readUInt16BE(index * 2));
}

function isThisMachine(address: string): boolean {
  if (address === "0.0.0.0" || address === "::" || address === "::1" || address.startsWith("127."))
    return true;
  return Object.values(networkInterfaces()).some((list) => list?.some((each) => each.address === address));
}

import { BlockList, isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { LRUCache } from "lru-cache";

/**
 * Which requests may reach loopback and private addresses: none; those to zones' origins; also scripts'
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
  readonly #known = new LRUCache<string, boolean>({ max: 10_000 });

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
    const plain = canonical(address);
    if (plain === undefined) return "invalid";
    const isOwn = this.#ownPorts.has(port) || (who === "socket" && this.#edgePorts.has(port));
    if (isOwn && isThisMachine(plain)) return "own_listener";
    if (!this.#isSpecial(plain)) return "allowed";
    const isOpen =
      this.#privateNetworks === "all" || (this.#privateNetworks === "origins" && who === "origin");
    return isOpen ? "allowed" : "private";
  }

  /** Cached per address: checking the list takes microseconds, on every request. */
  #isSpecial(address: string): boolean {
    let isSpecial = this.#known.get(address);
    if (isSpecial === undefined) {
      isSpecial = specialList.check(address, isIP(address) === 4 ? "ipv4" : "ipv6");
      this.#known.set(address, isSpecial);
    }
    return isSpecial;
  }
}

/**
 * The canonical form of an address: IPv4 for an IPv6 address that embeds one. Undefined for invalid addresses
 * and those with a scope.
 */
function canonical(address: string): string | undefined {
  if (isIP(address) === 4) return address;
  if (isIP(address) === 0 || address.includes("%")) return undefined;
  const spelling = new URL(`http://[${address}]`).hostname.slice(1, -1);
  return embeddedIPv4(expand(spelling)) ?? spelling;
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

function expand(spelling: string): number[] {
  const [head = "", tail] = spelling.split("::");
  const words = (text: string): number[] =>
    text === "" ? [] : text.split(":").map((word) => Number.parseInt(word, 16));
  const [left, right] = [words(head), words(tail ?? "")];
  return [...left, ...Array.from({ length: 8 - left.length - right.length }, () => 0), ...right];
}

function isThisMachine(address: string): boolean {
  if (address === "0.0.0.0" || address === "::" || address === "::1" || address.startsWith("127."))
    return true;
  return Object.values(networkInterfaces()).some((list) => list?.some((each) => each.address === address));
}

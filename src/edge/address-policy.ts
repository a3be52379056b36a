import { BlockList, isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { LRUCache } from "lru-cache";

/** Who may reach loopback and private addresses: nobody; zones' origins; also scripts' fetches and the like. */
export type PrivateNetworks = "deny" | "origins" | "all";
export type Verdict = "allowed" | "private" | "own_listener" | "invalid";

/** Not to be reached from outside (IANA special-purpose registries, and the metadata addresses of clouds among them). */
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

/** Decides on an address at the moment of connecting to it, so that a name that changes its mind gains nothing. */
export class AddressPolicy {
  readonly #privateNetworks: PrivateNetworks;
  readonly #ownPorts = new Set<number>();
  readonly #known = new LRUCache<string, boolean>({ max: 10_000 });

  constructor(privateNetworks: PrivateNetworks) {
    this.#privateNetworks = privateNetworks;
  }

  /** A listener of this node's own (API, DNS, control) that nobody may be led to, whatever the setting. */
  forbidListener(port: number): void {
    this.#ownPorts.add(port);
  }

  check(address: string, port: number, who: "origin" | "script"): Verdict {
    const plain = canonical(address);
    if (plain === undefined) return "invalid";
    if (this.#ownPorts.has(port) && isThisMachine(plain)) return "own_listener";
    if (!this.#isSpecial(plain)) return "allowed";
    const isOpen =
      this.#privateNetworks === "all" || (this.#privateNetworks === "origins" && who === "origin");
    return isOpen ? "allowed" : "private";
  }

  /** Kept per address: the list's own check costs microseconds, on every request. */
  #isSpecial(address: string): boolean {
    let isSpecial = this.#known.get(address);
    if (isSpecial === undefined) {
      isSpecial = specialList.check(address, isIP(address) === 4 ? "ipv4" : "ipv6");
      this.#known.set(address, isSpecial);
    }
    return isSpecial;
  }
}

/** The one spelling of an address: IPv4 where an IPv6 one only wraps it. Undefined for what is none, or has a scope. */
function canonical(address: string): string | undefined {
  if (isIP(address) === 4) return address;
  if (isIP(address) === 0 || address.includes("%")) return undefined;
  const spelling = new URL(`http://[${address}]`).hostname.slice(1, -1);
  return embeddedIPv4(expand(spelling)) ?? spelling;
}

/** The IPv4 address inside an IPv6 one that only wraps it: mapped, compatible, translated, NAT64 or 6to4. */
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

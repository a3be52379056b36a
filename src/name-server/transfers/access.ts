import { BlockList, isIPv6 } from "node:net";
import { addressBytes } from "../wire/address.ts";
import type { NameKey } from "../wire/name.ts";
import type { TransferKey } from "./tsig.ts";

/** Who may have copies of a zone. Plain data, so that it can go to other threads. */
export interface TransferRule {
  peers: readonly TransferPeer[];
  /** Networks, as ADDRESS/BITS, from which peers may ask. */
  networks: readonly string[];
}
export interface TransferPeer {
  id: string;
  address: string | null;
  port: number;
  keyId: string | null;
}
export interface TransferConfig {
  keys: readonly TransferKey[];
  /** By the zone's id. */
  rules: readonly (readonly [zoneId: string, rule: TransferRule])[];
}

/** Decides who is given copies of zones. */
export class TransferAccess {
  readonly #keys = new Map<NameKey, TransferKey[]>();
  readonly #rules = new Map<string, { peers: readonly TransferPeer[]; networks: BlockList }>();

  set({ keys, rules }: TransferConfig): void {
    this.#keys.clear();
    for (const key of keys) this.#keys.set(key.name, [...(this.#keys.get(key.name) ?? []), key]);
    this.#rules.clear();
    for (const [zoneId, { peers, networks }] of rules)
      this.#rules.set(zoneId, { peers, networks: listOf(networks) });
  }

  keysNamed(name: NameKey): readonly TransferKey[] {
    return this.#keys.get(name) ?? [];
  }

  isGivenOut(zoneId: string): boolean {
    return this.#rules.has(zoneId);
  }

  /**
   * A peer is known by its address, or by being in one of the account's networks, and by its key if it has one. One
   * without an address needs a key or a network: it must be known by something.
   */
  permits(zoneId: string, address: string, key: TransferKey | undefined): boolean {
    const rule = this.#rules.get(zoneId);
    if (rule === undefined) return false;
    const isInNetwork = rule.networks.check(address, isIPv6(address) ? "ipv6" : "ipv4");
    return rule.peers.some(
      (peer) =>
        (peer.keyId === null || peer.keyId === key?.id) &&
        (isInNetwork || (peer.address === null ? peer.keyId !== null : isSame(peer.address, address))),
    );
  }
}

/** An address may be spelled in several ways. */
const isSame = (one: string, other: string): boolean => addressBytes(one).equals(addressBytes(other));

function listOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", bits] = network.split("/");
    list.addSubnet(address, Number(bits), isIPv6(address) ? "ipv6" : "ipv4");
  }
  return list;
}

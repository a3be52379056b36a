import { BlockList, isIPv6 } from "node:net";
import { addressBytes } from "../name-server/wire/address.ts";
import type { NameKey } from "../name-server/wire/name.ts";
import type { TransferKey } from "./tsig.ts";

/** The peers that may transfer a zone. Plain data, so that it can be sent to threads. */
export interface TransferRule {
  peers: readonly TransferPeer[];
  /** Networks, as ADDRESS/BITS, from which peers may request transfers. */
  networks: readonly string[];
}
export interface TransferPeer {
  id: string;
  address: string | null;
  port: number;
  keyId: string | null;
}
/** The outgoing transfers of all zones. Plain data, so that it can be sent to threads. */
export interface TransferConfig {
  keys: readonly TransferKey[];
  /** Rules by zone id. */
  rules: readonly (readonly [zoneId: string, rule: TransferRule])[];
}

/** Decides which peers may transfer a zone. */
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
   * Whether a client may transfer a zone. A peer must match by its address, or by one of the account's
   * networks, and by its key if it has one. A peer without an address must match by a key or a network.
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

/** Compares addresses by their bytes, because an address has several notations. */
const isSame = (one: string, other: string): boolean => addressBytes(one).equals(addressBytes(other));

function listOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", bits] = network.split("/");
    list.addSubnet(address, Number(bits), isIPv6(address) ? "ipv6" : "ipv4");
  }
  return list;
}

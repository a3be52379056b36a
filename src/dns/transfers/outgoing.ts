import { FreshReads } from "../../platform/storage/changes/fresh-reads.ts";
import type { Storage, Write } from "../../platform/storage/storage.ts";
import * as store from "./store-transfers.ts";
import { nameKey, type NameKey } from "../name-server/wire/name.ts";
import type { TransferConfig, TransferRule } from "./access.ts";
import { transferErrors } from "./errors.ts";
import type { TransferAlgorithm, TransferKey } from "./tsig.ts";
import { clock } from "../../platform/timers/clock.ts";

interface OfAccount {
  id: string;
  accountId: string;
  name: string;
  createdOn: number;
}
/** A secret shared with peers. Its name is the key's name in TSIG records. */
export interface TsigSecret extends OfAccount {
  algorithm: TransferAlgorithm;
  secret: string;
}
/** A network from which peers may request transfers, as ADDRESS/BITS. */
export interface NetworkOfPeers extends OfAccount {
  network: string;
}
/** A secondary name server. */
export interface Peer extends OfAccount {
  address: string | null;
  port: number;
  isIncremental: boolean;
  keyId: string | null;
}
/** The outgoing transfer of a zone: its peers, and whether it is enabled. */
export interface OutgoingTransfer {
  zoneId: string;
  name: string;
  peerIds: readonly string[];
  isEnabled: boolean;
  createdOn: number;
}

/**
 * Outgoing transfers with their peers, keys and networks. All of them are in memory, because they are few.
 */
export class OutgoingTransfers {
  readonly #storage: Storage;
  readonly #reads: FreshReads<store.AllTransfers>;
  readonly #listeners: (() => void)[] = [];
  readonly #notifiers: ((zoneId: string) => void)[] = [];
  readonly #transferredMs = new Map<string, number>();
  readonly #notifiedMs = new Map<string, number>();
  #all: store.AllTransfers = { secrets: [], networks: [], peers: [], outgoing: [] };

  constructor(storage: Storage) {
    this.#storage = storage;
    this.#reads = new FreshReads(
      () => store.loadAll(storage.read),
      (all) => this.#replaceAll(all),
    );
    storage.onChange(async (changes) => {
      const isOurs = changes.some(
        ({ kind, id }) =>
          kind === "zone_transfers" || kind === "account" || (kind === "zone" && this.find(id)),
      );
      if (isOurs) await this.load();
    }, this.#reads.reload);
  }

  async load(): Promise<void> {
    await this.#reads.load();
  }

  #replaceAll(all: store.AllTransfers): void {
    this.#all = all;
    for (const times of [this.#transferredMs, this.#notifiedMs])
      for (const zoneId of [...times.keys()]) if (this.find(zoneId) === undefined) times.delete(zoneId);
    for (const listener of this.#listeners) listener();
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Requests a notification of a zone's peers. */
  notify(zoneId: string): void {
    for (const notifier of this.#notifiers) notifier(zoneId);
  }

  onNotify(notifier: (zoneId: string) => void): void {
    this.#notifiers.push(notifier);
  }

  secrets = (accountId: string): TsigSecret[] =>
    this.#all.secrets.filter((each) => each.accountId === accountId);
  networks = (accountId: string): NetworkOfPeers[] =>
    this.#all.networks.filter((each) => each.accountId === accountId);
  peers = (accountId: string): Peer[] => this.#all.peers.filter((each) => each.accountId === accountId);

  find(zoneId: string): OutgoingTransfer | undefined {
    return this.#all.outgoing.find((each) => each.zoneId === zoneId);
  }

  /** The configuration for the name server's threads. */
  config(): TransferConfig {
    const { secrets, outgoing } = this.#all;
    return {
      keys: secrets.map(({ id, name, algorithm, secret }) => ({
        id,
        name: keyName(name),
        algorithm,
        secret,
      })),
      rules: outgoing.flatMap((each) => (each.isEnabled ? [[each.zoneId, this.#ruleOf(each)] as const] : [])),
    };
  }

  async saveSecret(secret: TsigSecret): Promise<TsigSecret> {
    if (
      this.secrets(secret.accountId).some(
        ({ id, name }) => id !== secret.id && keyName(name) === keyName(secret.name),
      )
    )
      throw transferErrors.nameTaken(secret.name);
    await this.#write(secret.accountId, (trx) => store.saveSecret(trx, secret));
    return secret;
  }

  async saveNetwork(network: NetworkOfPeers): Promise<NetworkOfPeers> {
    await this.#write(network.accountId, (trx) => store.saveNetwork(trx, network));
    return network;
  }

  async savePeer(peer: Peer): Promise<Peer> {
    if (peer.keyId !== null && !this.secrets(peer.accountId).some(({ id }) => id === peer.keyId))
      throw transferErrors.unknownReference("tsig_id", peer.keyId);
    await this.#write(peer.accountId, (trx) => store.savePeer(trx, peer));
    return peer;
  }

  async deleteSecret({ id, accountId }: TsigSecret): Promise<void> {
    const user = this.peers(accountId).find(({ keyId }) => keyId === id);
    if (user !== undefined) throw transferErrors.inUse("TSIG", `peer ${user.name}`);
    await this.#write(accountId, (trx) => store.remove(trx, "transfer_keys", id));
  }

  async deleteNetwork({ id, accountId }: NetworkOfPeers): Promise<void> {
    await this.#write(accountId, (trx) => store.remove(trx, "transfer_networks", id));
  }

  async deletePeer({ id, accountId }: Peer): Promise<void> {
    const user = this.#all.outgoing.find(({ peerIds }) => peerIds.includes(id));
    if (user !== undefined) throw transferErrors.inUse("peer", `the outgoing transfer of ${user.name}`);
    await this.#write(accountId, (trx) => store.remove(trx, "transfer_peers", id));
  }

  async save(accountId: string, outgoing: OutgoingTransfer): Promise<OutgoingTransfer> {
    const known = new Set(this.peers(accountId).map(({ id }) => id));
    const unknown = outgoing.peerIds.find((id) => !known.has(id));
    if (unknown !== undefined) throw transferErrors.unknownReference("peers", unknown);
    await this.#write(accountId, (trx) => store.saveOutgoing(trx, outgoing));
    return outgoing;
  }

  async delete(accountId: string, zoneId: string): Promise<void> {
    await this.#write(accountId, (trx) => store.removeOutgoing(trx, zoneId));
  }

  /** The peers to notify of a zone's changes, with the keys for these messages. */
  peersToNotify(zoneId: string): { address: string; port: number; key: TransferKey | undefined }[] {
    const outgoing = this.find(zoneId);
    if (outgoing?.isEnabled !== true) return [];
    const { keys } = this.config();
    return this.#all.peers.flatMap(({ id, address, port, keyId }) =>
      address !== null && outgoing.peerIds.includes(id)
        ? [{ address, port, key: keys.find((key) => key.id === keyId) }]
        : [],
    );
  }

  noteTransfer(zoneId: string): void {
    if (this.find(zoneId) !== undefined) this.#transferredMs.set(zoneId, clock.now());
  }

  noteNotified(zoneId: string): void {
    if (this.find(zoneId) !== undefined) this.#notifiedMs.set(zoneId, clock.now());
  }

  /** When this node last completed a transfer of the zone, and when a peer last answered a notification. */
  timesOf(zoneId: string): { transferredMs: number | undefined; notifiedMs: number | undefined } {
    return { transferredMs: this.#transferredMs.get(zoneId), notifiedMs: this.#notifiedMs.get(zoneId) };
  }

  #ruleOf({ peerIds }: OutgoingTransfer): TransferRule {
    const peers = this.#all.peers.filter(({ id }) => peerIds.includes(id));
    const networks = peers[0] === undefined ? [] : this.networks(peers[0].accountId);
    return {
      peers: peers.map(({ id, address, port, keyId }) => ({ id, address, port, keyId })),
      networks: networks.map(({ network }) => network),
    };
  }

  async #write(accountId: string, work: (trx: Write) => Promise<void>): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await work(trx);
      changed({ kind: "zone_transfers", id: accountId });
    });
  }
}

/** The key's name in TSIG records. The API keeps the original spelling. */
const keyName = (name: string): NameKey => nameKey(name.toLowerCase().replace(/\.$/, ""));

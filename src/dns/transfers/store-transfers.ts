import type { Selectable } from "kysely";
import type { OutgoingTransfersTable } from "./tables.ts";
import type { Read, Write } from "../../platform/storage/storage.ts";
import type { NetworkOfPeers, OutgoingTransfer, Peer, TsigSecret } from "./outgoing.ts";
import type { TransferAlgorithm } from "./tsig.ts";

export interface AllTransfers {
  secrets: TsigSecret[];
  networks: NetworkOfPeers[];
  peers: Peer[];
  outgoing: OutgoingTransfer[];
}

export async function loadAll(read: Read): Promise<AllTransfers> {
  const secrets = await read.selectFrom("transfer_keys").selectAll().orderBy("created_on").execute();
  const networks = await read.selectFrom("transfer_networks").selectAll().orderBy("created_on").execute();
  const peers = await read.selectFrom("transfer_peers").selectAll().orderBy("created_on").execute();
  const outgoing = await read.selectFrom("outgoing_transfers").selectAll().execute();
  return {
    secrets: secrets.map((row) => ({
      id: row.id,
      accountId: row.account_id,
      createdOn: row.created_on,
      name: row.name,
      algorithm: row.algorithm as TransferAlgorithm,
      secret: row.secret,
    })),
    networks: networks.map((row) => ({
      id: row.id,
      accountId: row.account_id,
      createdOn: row.created_on,
      name: row.name,
      network: row.network,
    })),
    peers: peers.map((row) => ({
      id: row.id,
      accountId: row.account_id,
      createdOn: row.created_on,
      name: row.name,
      address: row.address,
      port: row.port,
      isIncremental: row.incremental === 1,
      keyId: row.key_id,
    })),
    outgoing: outgoing.map(toOutgoing),
  };
}

const toOutgoing = (row: Selectable<OutgoingTransfersTable>): OutgoingTransfer => ({
  zoneId: row.zone_id,
  name: row.name,
  peerIds: JSON.parse(row.peer_ids) as string[],
  isEnabled: row.enabled === 1,
  createdOn: row.created_on,
});

export async function saveSecret(trx: Write, secret: TsigSecret): Promise<void> {
  const columns = { name: secret.name, algorithm: secret.algorithm, secret: secret.secret };
  const own = { id: secret.id, account_id: secret.accountId, created_on: secret.createdOn };
  await trx
    .insertInto("transfer_keys")
    .values({ ...own, ...columns })
    .onConflict((conflict) => conflict.column("id").doUpdateSet(columns))
    .execute();
}

export async function saveNetwork(trx: Write, network: NetworkOfPeers): Promise<void> {
  const columns = { name: network.name, network: network.network };
  const own = { id: network.id, account_id: network.accountId, created_on: network.createdOn };
  await trx
    .insertInto("transfer_networks")
    .values({ ...own, ...columns })
    .onConflict((conflict) => conflict.column("id").doUpdateSet(columns))
    .execute();
}

export async function savePeer(trx: Write, peer: Peer): Promise<void> {
  const columns = {
    name: peer.name,
    address: peer.address,
    port: peer.port,
    incremental: peer.isIncremental ? (1 as const) : (0 as const),
    key_id: peer.keyId,
  };
  const own = { id: peer.id, account_id: peer.accountId, created_on: peer.createdOn };
  await trx
    .insertInto("transfer_peers")
    .values({ ...own, ...columns })
    .onConflict((conflict) => conflict.column("id").doUpdateSet(columns))
    .execute();
}

export async function remove(
  trx: Write,
  table: "transfer_keys" | "transfer_networks" | "transfer_peers",
  id: string,
): Promise<void> {
  await trx.deleteFrom(table).where("id", "=", id).execute();
}

export async function saveOutgoing(trx: Write, outgoing: OutgoingTransfer): Promise<void> {
  const columns = {
    name: outgoing.name,
    peer_ids: JSON.stringify(outgoing.peerIds),
    enabled: outgoing.isEnabled ? (1 as const) : (0 as const),
  };
  await trx
    .insertInto("outgoing_transfers")
    .values({ zone_id: outgoing.zoneId, created_on: outgoing.createdOn, ...columns })
    .onConflict((conflict) => conflict.column("zone_id").doUpdateSet(columns))
    .execute();
}

export async function removeOutgoing(trx: Write, zoneId: string): Promise<void> {
  await trx.deleteFrom("outgoing_transfers").where("zone_id", "=", zoneId).execute();
}

import type { Flag, Immutable } from "../../platform/storage/columns.ts";

export interface TransferKeysTable {
  id: Immutable<string>;
  account_id: Immutable<string>;
  name: string;
  created_on: Immutable<number>;
  algorithm: string;
  secret: string;
}

export interface TransferNetworksTable {
  id: Immutable<string>;
  account_id: Immutable<string>;
  name: string;
  created_on: Immutable<number>;
  network: string;
}

export interface TransferPeersTable {
  id: Immutable<string>;
  account_id: Immutable<string>;
  name: string;
  created_on: Immutable<number>;
  address: string | null;
  port: number;
  incremental: Flag;
  key_id: string | null;
}

/** Zones that secondaries may transfer. */
export interface OutgoingTransfersTable {
  zone_id: Immutable<string>;
  name: string;
  peer_ids: string;
  enabled: Flag;
  created_on: Immutable<number>;
}

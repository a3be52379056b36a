import type { Flag, Immutable } from "./columns.ts";

/** The keys and the status of signed zones. */
export interface DnssecTable {
  zone_id: Immutable<string>;
  status: string;
  private_key: string;
  public_key: string;
  multi_signer: Flag;
  ds_ttl: number;
  ds_gone_on: number | null;
  modified_on: number;
}

export interface DnsSettingsTable {
  zone_id: Immutable<string>;
  settings: string;
}

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

export interface ZoneSettingsTable {
  zone_id: Immutable<string>;
  setting: Immutable<string>;
  value: string;
  modified_on: number;
}

/** Certificates of zones with their keys, uploaded or of a pack. */
export interface CertificatesTable {
  id: Immutable<string>;
  zone_id: Immutable<string>;
  pack_id: Immutable<string | null>;
  type: string;
  bundle_method: string;
  priority: number;
  certificate: string;
  private_key: string;
  hosts: string;
  issuer: string;
  signature: string;
  expires_on: number;
  uploaded_on: number;
  modified_on: number;
}

/** Certificate packs: hosts for which the ACME authority issues. */
export interface CertificatePacksTable {
  id: Immutable<string>;
  zone_id: Immutable<string>;
  type: Immutable<"universal" | "advanced">;
  hosts: string;
  validation_method: "txt" | "http";
  certificate_authority: Immutable<string>;
  validity_days: Immutable<number>;
  attempts: number;
  next_on: number;
  error: string | null;
  created_on: Immutable<number>;
}

export interface AcmeAccountsTable {
  directory: Immutable<string>;
  private_key: Immutable<string>;
}

export interface AcmeChallengesTable {
  token: Immutable<string>;
  zone_id: Immutable<string>;
  kind: Immutable<"http" | "dns">;
  name: Immutable<string>;
  value: Immutable<string>;
  created_on: Immutable<number>;
}

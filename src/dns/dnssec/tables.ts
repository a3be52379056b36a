import type { Flag, Immutable } from "../../platform/storage/columns.ts";

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

import type { Flag, Immutable } from "../../platform/storage/columns.ts";

/** Zones with their plan, status and name servers. */
export interface ZonesTable {
  id: Immutable<string>;
  account_id: Immutable<string>;
  name: Immutable<string>;
  type: string;
  status: string;
  paused: Flag;
  plan: string;
  name_servers: string;
  vanity_name_servers: string;
  verification_key: string | null;
  smart_routing: "on" | "off";
  smart_routing_modified_on: number | null;
  serial: number;
  record_count: number;
  created_on: Immutable<number>;
  modified_on: number;
  activated_on: number | null;
  checked_on: number | null;
  authorized_by: string | null;
}

import type { Immutable } from "../../platform/storage/columns.ts";

export interface DnsSettingsTable {
  zone_id: Immutable<string>;
  settings: string;
}

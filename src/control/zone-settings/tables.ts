import type { Immutable } from "../../platform/storage/columns.ts";

export interface ZoneSettingsTable {
  zone_id: Immutable<string>;
  setting: Immutable<string>;
  value: string;
  modified_on: number;
}

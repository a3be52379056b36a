import type { Flag, Immutable } from "../../platform/storage/columns.ts";

export interface BotManagementTable {
  zone_id: Immutable<string>;
  is_enabled: Flag;
  modified_on: number;
}

import type { Flag, Immutable } from "../../platform/storage/columns.ts";

/** DNS records of zones. `data`, `settings` and `tags` are JSON. */
export interface DnsRecordsTable {
  id: Immutable<string>;
  zone_id: Immutable<string>;
  type: string;
  name: string;
  content: string;
  data: string | null;
  priority: number | null;
  ttl: number;
  proxied: Flag;
  settings: string;
  comment: string | null;
  tags: string;
  created_on: Immutable<number>;
  modified_on: number;
  comment_modified_on: number | null;
  tags_modified_on: number | null;
}

import type { Flag, Immutable } from "../../platform/storage/columns.ts";

/** Logpush jobs of zones and accounts. `zone_id` is null for a job of the account. */
export interface LogpushJobsTable {
  id: Immutable<number>;
  account_id: Immutable<string>;
  zone_id: Immutable<string | null>;
  data_set: Immutable<string>;
  name: string;
  /** Contains credentials. */
  destination: string;
  is_enabled: Flag;
  /** JSON. */
  output: string;
  /** JSON as the client wrote it; null without a filter. */
  filter: string | null;
  frequency: "high" | "low";
  max_upload_bytes: number;
  max_upload_records: number;
  max_upload_interval_seconds: number;
  last_complete: number | null;
  last_error: number | null;
  error_message: string | null;
  /** The first failure since the last success. */
  failing_since: number | null;
  /** The id of the last audit entry that is in a spool. */
  cursor: string | null;
  created_on: Immutable<number>;
  modified_on: number;
}

import type { Generated } from "kysely";
import type { Flag, Immutable, OrderOnly } from "./columns.ts";

/** See migrations/0005-workflows.ts. */
export interface WorkflowsTable {
  rid: Generated<number>;
  id: Immutable<string>;
  account_id: Immutable<string>;
  name: Immutable<string>;
  script_name: string;
  class_name: string;
  steps_max: number | null;
  success_retention_ms: number | null;
  error_retention_ms: number | null;
  /** JSON. */
  crons: string;
  created_on: Immutable<number>;
  modified_on: number;
}

/** Versions of workflows: the class and script with which instances were created. */
export interface WorkflowVersionsTable {
  rid: Generated<number>;
  id: Immutable<string>;
  workflow_rid: Immutable<number>;
  script_name: Immutable<string>;
  script_version: Immutable<string>;
  class_name: Immutable<string>;
  steps_max: Immutable<number | null>;
  created_on: Immutable<number>;
}

export interface WorkflowSettingsTable {
  account_id: Immutable<string>;
  success_retention_ms: number | null;
  error_retention_ms: number | null;
}

/** Instances of workflows. `rid` is internal, the id of the API is in `id`. */
export interface WorkflowInstancesTable {
  rid: Generated<number>;
  shard: Immutable<number>;
  account_id: Immutable<string>;
  workflow_rid: Immutable<number>;
  id: Immutable<string>;
  trigger: Immutable<string>;
  params: Immutable<string>;
  success_retention_ms: Immutable<number>;
  error_retention_ms: Immutable<number>;
  status: string;
  run: number;
  version_rid: number;
  created_on: number;
  modified_on: number;
  started_on: number | null;
  ended_on: number | null;
  paused_on: number | null;
  wake_on: number | null;
  expires_on: number | null;
  crashes: number;
  output: string | null;
  error: string | null;
}

/** What instances have done, in the order of `seq`: the results that a restarted run reads. */
export interface WorkflowJournalTable {
  seq: OrderOnly;
  rid: Immutable<number>;
  run: Immutable<number>;
  kind: Immutable<string>;
  key: Immutable<string>;
  attempt: Immutable<number>;
  at: Immutable<number>;
  started_on: Immutable<number | null>;
  due: Immutable<number | null>;
  value: Immutable<string | null>;
  error: Immutable<string | null>;
  config: Immutable<string | null>;
}

/** Events that instances have received and not yet taken, in the order of `seq`. */
export interface WorkflowEventsTable {
  seq: OrderOnly;
  rid: Immutable<number>;
  number: Immutable<number>;
  type: Immutable<string>;
  payload: Immutable<string>;
  at: Immutable<number>;
}

/** Namespaces of customers' scripts. */
export interface DispatchNamespacesTable {
  id: Immutable<string>;
  account_id: Immutable<string>;
  name: string;
  trusted: Flag;
  created_on: Immutable<number>;
  created_by: Immutable<string>;
  modified_on: number;
  modified_by: string;
}

/** Scripts of accounts, and of customers in a namespace. */
export interface ScriptsTable {
  id: Immutable<string>;
  account_id: Immutable<string>;
  namespace_id: Immutable<string | null>;
  owner_id: Immutable<string>;
  name: Immutable<string>;
  tags: string;
  settings: string;
  live_versions: string;
  version_count: number;
  subdomain_enabled: Flag;
  previews_enabled: Flag;
  migration_tag: string | null;
  created_on: Immutable<number>;
  modified_on: number;
}

/** Namespaces of Durable Objects. `script_id` is null for a class of the platform itself. */
export interface ObjectNamespacesTable {
  id: Immutable<string>;
  account_id: Immutable<string>;
  script_id: string | null;
  class_name: string;
  sqlite: Immutable<Flag>;
  created_on: Immutable<number>;
}

/** Databases of D1; their data is in objects. */
export interface D1DatabasesTable {
  id: Immutable<string>;
  account_id: Immutable<string>;
  name: Immutable<string>;
  location_hint: Immutable<string | null>;
  jurisdiction: Immutable<string | null>;
  read_replication: "auto" | "disabled";
  created_on: Immutable<number>;
}

/** Versions of scripts, which never change. */
export interface ScriptVersionsTable {
  id: Immutable<string>;
  script_id: Immutable<string>;
  number: Immutable<number>;
  code_id: Immutable<string>;
  content: Immutable<string>;
  manifest_id: Immutable<string | null>;
  created_on: Immutable<number>;
}

export interface ScriptModulesTable {
  code_id: Immutable<string>;
  position: Immutable<number>;
  script_id: Immutable<string>;
  name: Immutable<string>;
  kind: Immutable<string>;
  content_type: Immutable<string>;
  content: Immutable<Uint8Array>;
}

/** Deployments of scripts; `versions` is JSON with version ids and percentages. */
export interface ScriptDeploymentsTable {
  id: Immutable<string>;
  script_id: Immutable<string>;
  versions: Immutable<string>;
  source: Immutable<string>;
  author_email: Immutable<string>;
  annotations: Immutable<string>;
  created_on: Immutable<number>;
}

export interface WorkerRoutesTable {
  id: Immutable<string>;
  zone_id: Immutable<string>;
  pattern: string;
  script: string | null;
}

export interface WorkerDomainsTable {
  id: Immutable<string>;
  account_id: Immutable<string>;
  zone_id: string;
  hostname: Immutable<string>;
  service: string;
  cert_id: Immutable<string>;
}

export interface AccountSubdomainsTable {
  account_id: Immutable<string>;
  subdomain: string | null;
}

/** Key-value namespaces of accounts. */
export interface KvNamespacesTable {
  id: Immutable<string>;
  account_id: Immutable<string>;
  title: string;
  created_on: Immutable<number>;
}

export interface KvEntriesTable {
  namespace_id: Immutable<string>;
  key: Immutable<Uint8Array>;
  value: Uint8Array | null;
  blob_key: string | null;
  metadata: string | null;
  expires_on: number | null;
}

export interface AssetFilesTable {
  scope: Immutable<string>;
  hash: Immutable<string>;
  size_bytes: Immutable<number>;
  content_type: Immutable<string | null>;
  blob_key: Immutable<string>;
  used_on: number;
}

export interface AssetManifestsTable {
  id: Immutable<string>;
  scope: Immutable<string>;
  entries: Immutable<string>;
  used_on: number;
}

export interface QueuesTable {
  number: Generated<number>;
  id: Immutable<string>;
  account_id: Immutable<string>;
  name: string;
  settings: string;
  created_on: Immutable<number>;
  modified_on: number;
}

export interface QueueConsumersTable {
  id: Immutable<string>;
  queue_number: Immutable<number>;
  type: string;
  script_name: string | null;
  dead_letter_queue: string | null;
  settings: string;
  created_on: Immutable<number>;
}

/** `available_on` is when a message can be delivered (again): after its delay, or when its lease ends. */
export interface QueueMessagesTable {
  number: Generated<number>;
  queue_number: number;
  id: Immutable<string>;
  content_type: Immutable<string>;
  body: Immutable<Uint8Array>;
  attempts: number;
  available_on: number;
  lease: string | null;
  sent_on: number;
}

/** `holder` is the node to which the tail's client is connected, or will connect. */
export interface TailsTable {
  id: Immutable<string>;
  account_id: Immutable<string>;
  script_id: Immutable<string | null>;
  filters: Immutable<string>;
  secret_hash: Immutable<string>;
  creator_kind: Immutable<"token" | "key">;
  creator_id: Immutable<string>;
  expires_on: Immutable<number>;
  holder: string;
  is_connected: Flag;
  seen_on: number;
}

export interface TailEventsTable {
  number: Generated<number>;
  tail_id: Immutable<string>;
  event: Immutable<string>;
}

/** Cron triggers of scripts, with the minute of their last run. */
export interface SchedulesTable {
  account_id: Immutable<string>;
  script_name: Immutable<string>;
  cron: Immutable<string>;
  last_run_on: number;
  missed_runs: number;
  last_missed_on: number | null;
  created_on: Immutable<number>;
  modified_on: number;
}

/** Uploaded images; their bytes are blobs. */
export interface ImagesTable {
  account_id: Immutable<string>;
  id: Immutable<string>;
  filename: string;
  uploaded_on: number;
  require_signed_urls: Flag;
  meta: string;
  creator: string | null;
  upload_token_hash: string | null;
  expires_on: number | null;
  content: string | null;
  focus: string | null;
}

export interface ImageVariantsTable {
  account_id: Immutable<string>;
  id: Immutable<string>;
  options: string;
  never_require_signed_urls: Flag;
  created_on: Immutable<number>;
}

export interface ImageKeysTable {
  account_id: Immutable<string>;
  name: Immutable<string>;
  value: Immutable<string>;
  created_on: Immutable<number>;
}

export interface ImageSettingsTable {
  account_id: Immutable<string>;
  flexible_variants: Flag;
  browser_ttl: number | null;
}

export interface ImageOrphansTable {
  blob_key: Immutable<string>;
  noted_on: Immutable<number>;
}

/** One row: where the blobs of the installation are. */
export interface BlobPlaceTable {
  /** Always the same: the table has one row. */
  of: Immutable<"blobs">;
  id: string;
  shown: string;
}

export interface BlobsTable {
  key: Immutable<string>;
  size_bytes: Immutable<number>;
  sha256: Immutable<string>;
  written_on: Immutable<number>;
}

export interface BlobChunksTable {
  key: Immutable<string>;
  number: Immutable<number>;
  bytes: Immutable<Uint8Array>;
}

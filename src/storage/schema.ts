import type { ColumnType, Generated } from "kysely";

/** Times are integer milliseconds, booleans are 0 or 1, and JSON is text: the same on SQLite and PostgreSQL. */
type Flag = 0 | 1;
type Immutable<T> = ColumnType<T, T, never>;

export interface AccountsTable {
  id: Immutable<string>;
  name: string;
  type: string;
  settings: string;
  has_billing: Flag;
  created_on: Immutable<number>;
}

export interface UsersTable {
  id: Immutable<string>;
  email: string;
  first_name: string | null;
  last_name: string | null;
  telephone: string | null;
  country: string | null;
  zipcode: string | null;
  api_key_hash: string | null;
  created_on: Immutable<number>;
  modified_on: number;
}

export interface MembershipsTable {
  id: Immutable<string>;
  account_id: Immutable<string>;
  user_id: Immutable<string>;
  status: string;
  roles: string;
  created_on: Immutable<number>;
}

export interface ApiTokensTable {
  id: Immutable<string>;
  owner_kind: Immutable<"user" | "account">;
  owner_id: Immutable<string>;
  name: string;
  status: "active" | "disabled";
  policies: string;
  condition: string | null;
  secret_hash: string;
  not_before: number | null;
  expires_on: number | null;
  issued_on: Immutable<number>;
  modified_on: number;
  last_used_on: number | null;
}

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
}

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

export interface RulesetsTable {
  id: Immutable<string>;
  owner_kind: Immutable<"zone" | "account">;
  owner_id: Immutable<string>;
  kind: Immutable<string>;
  phase: Immutable<string>;
  name: string;
  description: string;
  version: number;
  rules: string;
  last_updated: number;
}

export interface SnippetsTable {
  zone_id: Immutable<string>;
  name: Immutable<string>;
  version: string;
  main_module: string;
  modules: string;
  created_on: Immutable<number>;
  modified_on: number;
}

export interface BotManagementTable {
  zone_id: Immutable<string>;
  is_enabled: Flag;
  modified_on: number;
}

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
  created_on: Immutable<number>;
  modified_on: number;
}

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

export interface WorkflowJournalTable {
  seq: Generated<number>;
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

export interface WorkflowEventsTable {
  seq: Generated<number>;
  rid: Immutable<number>;
  number: Immutable<number>;
  type: Immutable<string>;
  payload: Immutable<string>;
  at: Immutable<number>;
}

/** On PostgreSQL, every committed configuration change; see change-log.ts. */
export interface ChangesTable {
  seq: Generated<number>;
  kind: Immutable<string>;
  id: Immutable<string>;
  parent_id: Immutable<string | null>;
  logged_on: Immutable<number>;
}

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
  created_on: Immutable<number>;
  modified_on: number;
}

export interface ScriptVersionsTable {
  id: Immutable<string>;
  script_id: Immutable<string>;
  number: Immutable<number>;
  code_id: Immutable<string>;
  content: Immutable<string>;
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
  zone_id: Immutable<string>;
  hostname: Immutable<string>;
  service: string;
  cert_id: Immutable<string>;
}

export interface AccountSubdomainsTable {
  account_id: Immutable<string>;
  subdomain: string | null;
}

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

export interface AssetFilesTable {
  scope: Immutable<string>;
  hash: Immutable<string>;
  size_bytes: Immutable<number>;
  content_type: Immutable<string | null>;
  blob_key: Immutable<string>;
  created_on: Immutable<number>;
}

export interface AssetManifestsTable {
  id: Immutable<string>;
  scope: Immutable<string>;
  entries: Immutable<string>;
  created_on: Immutable<number>;
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

/** `available_on` is when a message may be delivered (again): after its delay, or when its lease ends. */
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

export interface MetaTable {
  key: Immutable<string>;
  value: string;
}

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

export interface Database {
  dnssec: DnssecTable;
  dns_settings: DnsSettingsTable;
  transfer_keys: TransferKeysTable;
  transfer_networks: TransferNetworksTable;
  transfer_peers: TransferPeersTable;
  outgoing_transfers: OutgoingTransfersTable;
  accounts: AccountsTable;
  users: UsersTable;
  memberships: MembershipsTable;
  api_tokens: ApiTokensTable;
  zones: ZonesTable;
  dns_records: DnsRecordsTable;
  rulesets: RulesetsTable;
  snippets: SnippetsTable;
  bot_management: BotManagementTable;
  dispatch_namespaces: DispatchNamespacesTable;
  scripts: ScriptsTable;
  script_versions: ScriptVersionsTable;
  script_modules: ScriptModulesTable;
  script_deployments: ScriptDeploymentsTable;
  worker_routes: WorkerRoutesTable;
  worker_domains: WorkerDomainsTable;
  account_subdomains: AccountSubdomainsTable;
  kv_namespaces: KvNamespacesTable;
  kv_entries: KvEntriesTable;
  asset_files: AssetFilesTable;
  asset_manifests: AssetManifestsTable;
  queues: QueuesTable;
  queue_consumers: QueueConsumersTable;
  queue_messages: QueueMessagesTable;
  schedules: SchedulesTable;
  workflows: WorkflowsTable;
  workflow_versions: WorkflowVersionsTable;
  workflow_settings: WorkflowSettingsTable;
  workflow_instances: WorkflowInstancesTable;
  workflow_journal: WorkflowJournalTable;
  workflow_events: WorkflowEventsTable;
  changes: ChangesTable;
  images: ImagesTable;
  image_variants: ImageVariantsTable;
  image_keys: ImageKeysTable;
  image_settings: ImageSettingsTable;
  image_orphans: ImageOrphansTable;
  zone_settings: ZoneSettingsTable;
  certificates: CertificatesTable;
  acme_accounts: AcmeAccountsTable;
  certificate_packs: CertificatePacksTable;
  acme_challenges: AcmeChallengesTable;
  meta: MetaTable;
}

import type { Flag, Immutable } from "./columns.ts";
import type {
  BlobChunksTable,
  BlobPlaceTable,
  BlobsTable,
  WorkflowsTable,
  WorkflowVersionsTable,
  WorkflowSettingsTable,
  WorkflowInstancesTable,
  WorkflowJournalTable,
  WorkflowEventsTable,
  DispatchNamespacesTable,
  D1DatabasesTable,
  ObjectNamespacesTable,
  ScriptsTable,
  ScriptVersionsTable,
  ScriptModulesTable,
  ScriptDeploymentsTable,
  WorkerRoutesTable,
  WorkerDomainsTable,
  AccountSubdomainsTable,
  KvNamespacesTable,
  KvEntriesTable,
  AssetFilesTable,
  AssetManifestsTable,
  QueuesTable,
  QueueConsumersTable,
  QueueMessagesTable,
  SchedulesTable,
  TailEventsTable,
  TailsTable,
  ImagesTable,
  ImageVariantsTable,
  ImageKeysTable,
  ImageSettingsTable,
  ImageOrphansTable,
} from "./schema-hosting.ts";
import type {
  DnssecTable,
  DnsSettingsTable,
  TransferKeysTable,
  TransferNetworksTable,
  TransferPeersTable,
  OutgoingTransfersTable,
  ZoneSettingsTable,
  CertificatesTable,
  CertificatePacksTable,
  AcmeAccountsTable,
  AcmeChallengesTable,
} from "./schema-network.ts";

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
  /** The user was created by an accepted invitation, not by the configuration. */
  invited: Immutable<Flag>;
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

/** Invitations to accounts, with the hash of their secret. */
export interface InvitationsTable {
  id: Immutable<string>;
  account_id: Immutable<string>;
  email: Immutable<string>;
  roles: string;
  status: "pending" | "rejected";
  secret_hash: Immutable<string>;
  invited_by: Immutable<string | null>;
  invited_on: Immutable<number>;
  expires_on: Immutable<number>;
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

/** Rulesets; `rules` is JSON. */
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

/** Snippets of zones with their code. */
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

/** On PostgreSQL, the number of the last committed transaction with changes; see changes/change-log.ts. One row. */
export interface ChangeHeadTable {
  one: Immutable<1>;
  seq: number;
}

/** On PostgreSQL, every committed configuration change; see changes/change-log.ts. */
export interface ChangesTable {
  seq: Immutable<number>;
  n: Immutable<number>;
  total: Immutable<number>;
  kind: Immutable<string>;
  id: Immutable<string>;
  parent_id: Immutable<string | null>;
  logged_on: Immutable<number>;
}

/** The nodes of the installation; see nodes/node-registry.ts. Times are epoch milliseconds of the database's clock. */
export interface NodesTable {
  id: Immutable<string>;
  /** A new one with each start. */
  run: string;
  name: string;
  pid: number;
  /** Which data folder it is, so that a copy can be told from the original. */
  place: string;
  version: string;
  /** Where its blobs are. */
  blobs: string;
  started_on: number;
  seen_on: number;
  /** Null unless it was stopped. */
  ended_on: number | null;
  /** The number of the last change that it has taken over, on PostgreSQL. */
  seq: number | null;
}

/** On PostgreSQL, the calls that nodes count against rate limits; see nodes/shared-rates.ts. */
export interface NodeRatesTable {
  node: Immutable<string>;
  run: string;
  /** JSON: a total for each key, since the start of the node. */
  totals: string;
}

export interface MetaTable {
  key: Immutable<string>;
  value: string;
}

/** Every table, for Kysely. `bigint` and JSON columns are as SQLite and PostgreSQL both return them. */
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
  invitations: InvitationsTable;
  api_tokens: ApiTokensTable;
  zones: ZonesTable;
  dns_records: DnsRecordsTable;
  rulesets: RulesetsTable;
  snippets: SnippetsTable;
  bot_management: BotManagementTable;
  dispatch_namespaces: DispatchNamespacesTable;
  scripts: ScriptsTable;
  object_namespaces: ObjectNamespacesTable;
  d1_databases: D1DatabasesTable;
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
  tails: TailsTable;
  tail_events: TailEventsTable;
  workflows: WorkflowsTable;
  workflow_versions: WorkflowVersionsTable;
  workflow_settings: WorkflowSettingsTable;
  workflow_instances: WorkflowInstancesTable;
  workflow_journal: WorkflowJournalTable;
  workflow_events: WorkflowEventsTable;
  change_head: ChangeHeadTable;
  changes: ChangesTable;
  images: ImagesTable;
  image_variants: ImageVariantsTable;
  image_keys: ImageKeysTable;
  image_settings: ImageSettingsTable;
  image_orphans: ImageOrphansTable;
  blob_place: BlobPlaceTable;
  blobs: BlobsTable;
  blob_chunks: BlobChunksTable;
  zone_settings: ZoneSettingsTable;
  certificates: CertificatesTable;
  acme_accounts: AcmeAccountsTable;
  certificate_packs: CertificatePacksTable;
  acme_challenges: AcmeChallengesTable;
  nodes: NodesTable;
  node_rates: NodeRatesTable;
  meta: MetaTable;
}

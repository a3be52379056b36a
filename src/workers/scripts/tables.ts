import type { Flag, Immutable } from "../../platform/storage/columns.ts";

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

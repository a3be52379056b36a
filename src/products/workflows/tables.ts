import type { Generated } from "kysely";
import type { Immutable, OrderOnly } from "../../platform/storage/columns.ts";

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
  /** The `traceparent` of the span that created the instance; null without one. */
  creator_trace: Immutable<string | null>;
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

/** The journal of instances, in the order of `seq`: the results that a restarted run reads. */
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

import type { EventRow, InstanceHead, InstanceState, NewInstance } from "../instance.ts";
import type { JournalRow } from "./journal.ts";

/** Columns of a table, for the stores of both database engines. */
interface Columns<T> {
  names: readonly string[];
  /** The type of each column on PostgreSQL. */
  types: readonly string[];
  values: (row: T) => (string | number | null)[];
}

function columns<T>(map: {
  [name: string]: [type: "text" | "bigint" | "integer", of: (row: T) => string | number | null];
}): Columns<T> {
  const names = Object.keys(map);
  const entries = Object.values(map);
  return { names, types: entries.map(([type]) => type), values: (row) => entries.map(([, of]) => of(row)) };
}

export const stateColumns = columns<InstanceState>({
  status: ["text", (s) => s.status],
  run: ["integer", (s) => s.run],
  version_rid: ["bigint", (s) => s.versionRid],
  created_on: ["bigint", (s) => s.createdOn],
  modified_on: ["bigint", (s) => s.modifiedOn],
  started_on: ["bigint", (s) => s.startedOn],
  ended_on: ["bigint", (s) => s.endedOn],
  paused_on: ["bigint", (s) => s.pausedOn],
  wake_on: ["bigint", (s) => s.wakeOn],
  expires_on: ["bigint", (s) => s.expiresOn],
  crashes: ["integer", (s) => s.crashes],
  output: ["text", (s) => s.output],
  error: ["text", (s) => s.error],
});

const headColumns = columns<Omit<InstanceHead, "rid">>({
  shard: ["integer", (h) => h.shard],
  account_id: ["text", (h) => h.accountId],
  workflow_rid: ["bigint", (h) => h.workflowRid],
  id: ["text", (h) => h.id],
  trigger: ["text", (h) => h.trigger],
  creator_trace: ["text", (h) => h.creatorTrace],
  params: ["text", (h) => h.params],
  success_retention_ms: ["bigint", (h) => h.successRetentionMs],
  error_retention_ms: ["bigint", (h) => h.errorRetentionMs],
});

export const instanceColumns: Columns<NewInstance> = {
  names: [...headColumns.names, ...stateColumns.names],
  types: [...headColumns.types, ...stateColumns.types],
  values: (row) => [...headColumns.values(row), ...stateColumns.values(row)],
};

export const journalColumns = columns<JournalRow>({
  rid: ["bigint", (r) => r.rid],
  run: ["integer", (r) => r.run],
  kind: ["text", (r) => r.kind],
  key: ["text", (r) => r.key],
  attempt: ["integer", (r) => r.attempt],
  at: ["bigint", (r) => r.at],
  started_on: ["bigint", (r) => r.startedOn],
  due: ["bigint", (r) => r.due],
  value: ["text", (r) => r.value],
  error: ["text", (r) => r.error],
  config: ["text", (r) => r.config],
});

export const eventColumns = columns<EventRow>({
  rid: ["bigint", (r) => r.rid],
  number: ["bigint", (r) => r.number],
  type: ["text", (r) => r.type],
  payload: ["text", (r) => r.payload],
  at: ["bigint", (r) => r.at],
});

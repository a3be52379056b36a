import { binding, declare, table } from "../../declaration.ts";
import type {
  WorkflowsTable,
  WorkflowVersionsTable,
  WorkflowSettingsTable,
  WorkflowInstancesTable,
  WorkflowJournalTable,
  WorkflowEventsTable,
} from "./tables.ts";
import type { workflowType } from "./binding-type.ts";

/** Workflows. */
export const declaration = declare({
  settings: {
    workflowCells: {
      kind: "count",
      min: 1,
      max: 256,
      flag: "workflow-cells",
      env: "SELVEDGE_WORKFLOW_CELLS",
      describe:
        "processes (cells) that workflows share, started when one runs (default: half the number of CPU cores)",
    },
    workflowConcurrency: {
      kind: "count",
      min: 1,
      max: 50_000,
      flag: "workflow-concurrency",
      env: "SELVEDGE_WORKFLOW_CONCURRENCY",
      default: 1000,
      describe: "running workflow instances of an account on a node, without sleeping and waiting ones",
    },
    workflowQueuedMax: {
      kind: "count",
      min: 1,
      max: 2_000_000,
      flag: "workflow-queued-max",
      env: "SELVEDGE_WORKFLOW_QUEUED_MAX",
      default: 100_000,
      describe: "queued workflow instances on a node; further ones are rejected",
    },
    workflowCreateRate: {
      kind: "count",
      min: 0,
      max: 1_000_000,
      flag: "workflow-create-rate",
      env: "SELVEDGE_WORKFLOW_CREATE_RATE",
      default: 100,
      describe: "instances of one workflow created or restarted in a second, over all nodes; 0 for no limit",
    },
    workflowAccountCreateRate: {
      kind: "count",
      min: 0,
      max: 1_000_000,
      flag: "workflow-account-create-rate",
      env: "SELVEDGE_WORKFLOW_ACCOUNT_CREATE_RATE",
      default: 300,
      describe:
        "instances of all workflows of an account created or restarted in a second, over all nodes; 0 for no limit",
    },
    workflowStepsMax: {
      kind: "count",
      min: 1,
      max: 25_000,
      flag: "workflow-steps-max",
      env: "SELVEDGE_WORKFLOW_STEPS_MAX",
      default: 10_000,
      describe:
        "steps of a workflow instance, unless its workflow sets a limit; sleeps and waits do not count",
    },
    workflowRetryDelayMs: {
      kind: "count",
      min: 0,
      max: 86_400_000,
      flag: "workflow-retry-delay-ms",
      env: "SELVEDGE_WORKFLOW_RETRY_DELAY_MS",
      default: 10_000,
      describe: "delay before the first retry of a workflow step, unless the step sets one",
    },
    workflowLingerMs: {
      kind: "count",
      min: 0,
      max: 60_000,
      flag: "workflow-linger-ms",
      env: "SELVEDGE_WORKFLOW_LINGER_MS",
      default: 1000,
      describe: "how long a sleeping or waiting workflow instance stays in memory",
    },
  },
  tables: {
    workflows: table<WorkflowsTable>(),
    workflow_versions: table<WorkflowVersionsTable>(),
    workflow_settings: table<WorkflowSettingsTable>(),
    workflow_instances: table<WorkflowInstancesTable>(),
    workflow_journal: table<WorkflowJournalTable>(),
    workflow_events: table<WorkflowEventsTable>(),
  },
  migrations: {
    "0005-workflows": async () => (await import("./migrations/0005-workflows.ts")).workflows,
    "0010-workflow-schedules": async () =>
      (await import("./migrations/0010-workflow-schedules.ts")).workflowSchedules,
    "0011-lasting-numbers": async () => (await import("./migrations/0011-lasting-numbers.ts")).lastingNumbers,
    "0034-workflow-marks": async () => (await import("./migrations/0034-workflow-marks.ts")).workflowMarks,
    "0037-workflow-creators": async () =>
      (await import("./migrations/0037-workflow-creators.ts")).workflowCreators,
  },
  changes: ["workflow"],
  bindings: {
    workflow: binding<typeof workflowType>(),
  },
});

import { availableParallelism } from "node:os";
import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { cellDefaults } from "../cells/settings.ts";
import type { Config } from "../config/settings.ts";
import type { Scripts } from "../scripts/scripts.ts";
import type { Versions } from "../scripts/versions.ts";
import type { Storage } from "../storage/storage.ts";
import { plans } from "../zones/plans.ts";
import type { Code } from "./cells.ts";
import { whileCurrent } from "./code.ts";
import { systemClock } from "./clock.ts";
import { Engine } from "./engine.ts";
import { Instances } from "./instances.ts";
import { LaneCells, type Prepared } from "./lane-cells.ts";
import { SharedNodes, singleNode } from "./nodes.ts";
import { WorkflowSchedules } from "./schedules.ts";
import { scriptVersionsInUse } from "./store-workflows.ts";
import { instanceStore } from "./store.ts";
import { workflowErrors, workflowLimits } from "./workflow.ts";
import { Workflows } from "./workflows.ts";

/** What belongs to workflows. */
export interface WorkflowServices {
  workflows: Workflows;
  workflowInstances: Instances;
  /** Steps of an instance whose workflow says nothing else. */
  workflowStepsMax: number;
  /** Goes on with what was going on; `prepare` finds the code of an instance. */
  startWorkflows(prepare: (code: Code) => Promise<Prepared | undefined>): Promise<void>;
  closeWorkflows(): Promise<void>;
}

/** Of one script's isolate: all of its instances in a cell share it. */
const heapBytesMax = 256 * 1024 * 1024;
/** An instance that waits stays in its cell for a while, longer than a request does. */
const youngBytesMax = 8 * 1024 * 1024;
const dayMs = 86_400_000;

/** Puts the engine of workflows together. */
export function createWorkflows(
  config: Config,
  storage: Storage,
  { scripts, versions }: { scripts: Pick<Scripts, "live">; versions: Pick<Versions, "onForget"> },
  logger: Logger,
): WorkflowServices {
  const workflows = new Workflows(storage, scripts);
  // An instance stays on the code that it began with.
  versions.onForget(scriptVersionsInUse);
  const node = randomUUID();
  const store = instanceStore(storage, node);
  let prepare: (code: Code) => Promise<Prepared | undefined> = async () => undefined;
  const cells = new LaneCells({
    settings: {
      ...cellDefaults,
      shared: config.workflowCells ?? Math.max(1, Math.floor(availableParallelism() / 2)),
      // Nobody waits for a workflow as for an answer: a step may take its time.
      stallCpuMs: 5000,
      memoryBytesMax: heapBytesMax,
      youngBytesMax,
    },
    async prepare(code) {
      const prepared = await prepare(code);
      return prepared && shared ? whileCurrent(prepared, () => engine.core.isCurrent()) : prepared;
    },
    logger,
  });
  const version = async (rid: number) => {
    const found = await workflows.version(rid);
    if (found === undefined) throw workflowErrors.versionNotFound();
    const { version: of, workflow } = found;
    return {
      rid,
      workflowName: workflow.name,
      stepsMax: of.stepsMax ?? config.workflowStepsMax,
      code: {
        accountId: workflow.accountId,
        scriptName: of.scriptName,
        scriptVersion: of.scriptVersion,
        className: of.className,
      },
    };
  };
  const engine = new Engine({
    store,
    cells,
    clock: systemClock,
    version,
    latestVersion: async (rid) => version((await workflows.latestVersionOf(rid)).rid),
    concurrency: config.workflowConcurrency,
    limits: {
      lingerMs: config.workflowLingerMs,
      valueBytesMax: workflowLimits.valueBytesMax,
      retryDelayMs: config.workflowRetryDelayMs,
    },
    onFault: (error, what) => logger.error({ err: error }, what),
    onWarning: ({ id, accountId }, warning) =>
      logger.warn({ workflow_instance: id, account: accountId }, warning),
  });
  cells.listener = engine.calls;
  const shared =
    storage.engine === "postgres" ? new SharedNodes(storage.read, node, engine, logger) : undefined;
  const workflowInstances = new Instances({
    read: storage.read,
    store,
    engine,
    nodes: shared ?? singleNode(engine),
    workflows,
    retentionMs: plans[config.defaultPlan].workflowRetentionDays * dayMs,
    queuedMax: config.workflowQueuedMax,
    createRate: { workflow: config.workflowCreateRate, account: config.workflowAccountCreateRate },
  });
  const schedules = new WorkflowSchedules(workflows, workflowInstances, logger);
  return {
    workflows,
    workflowStepsMax: config.workflowStepsMax,
    workflowInstances,
    async startWorkflows(given) {
      prepare = given;
      await workflows.load();
      await (shared === undefined ? engine.start() : shared.start());
      schedules.start();
    },
    async closeWorkflows() {
      await schedules.stop();
      await engine.stop();
      await shared?.stop();
      await cells.close();
    },
  };
}

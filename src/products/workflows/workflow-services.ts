import { availableParallelism } from "node:os";
import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { cellDefaults } from "../../sandbox/settings.ts";
import type { RpcTunnels } from "../../sandbox/gateway/rpc-tunnels.ts";
import type { Config } from "../../platform/config/settings.ts";
import type { Runtime } from "../../workers/runtime/runtime.ts";
import type { Scripts } from "../../workers/scripts/scripts.ts";
import type { Versions } from "../../workers/scripts/versions/versions.ts";
import type { SharedRates } from "../../platform/storage/nodes/shared-rates.ts";
import type { Tracer } from "../../platform/tracing/spans/tracer.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { plans } from "../../control/zones/plans.ts";
import { whileCurrent, workflowCode } from "./cells/code.ts";
import type { DueWork } from "../../capability.ts";
import { clock } from "../../platform/timers/clock.ts";
import { earliest } from "../../platform/timers/earliest.ts";
import type { WorkflowEngineOptions } from "./engine/engine-state.ts";
import { WorkflowEngine } from "./engine/engine.ts";
import { fastForward } from "./engine/fast-forward.ts";
import { Instances } from "./instances.ts";
import { TestedInvocations } from "./cells/tested-invocations.ts";
import { WorkflowCells } from "./cells/workflow-cells.ts";
import { SharedNodes, singleNode } from "./cluster/nodes.ts";
import { WorkflowSchedules } from "./schedules.ts";
import { scriptVersionsInUse } from "./store/store-workflows.ts";
import { instanceStore } from "./store/store.ts";
import type { WorkflowMeasures } from "./metrics.ts";
import { workflowErrors } from "./errors.ts";
import { workflowLimits } from "./workflow.ts";
import { Workflows } from "./workflows.ts";

/** Services of workflows that other parts of the platform use. */
export interface WorkflowServices {
  workflows: Workflows;
  workflowInstances: Instances;
  /** Default limit of steps for an instance whose workflow sets none. */
  workflowStepsMax: number;
  workflowEngine: {
    /** Of this node. */
    measures: WorkflowMeasures;
    /** Recovers instances of the last process. */
    start(): Promise<void>;
    /** Forgets the instances in memory, and recovers those of the database. */
    reset(): Promise<void>;
    /** Undefined without the test kit. */
    underTest: TestedInvocations | undefined;
    /** For the test kit: see fast-forward.ts. */
    fastForward(rid: number, byMs: number): Promise<number | undefined>;
    /** Gives the instances to the other nodes. */
    giveBack(): Promise<void>;
    /** The instances that wait for a time, and the schedules. */
    due: DueWork;
    /** Removes instances past their retention. Resolves with the number of all since the start. */
    expire(): Promise<number>;
    close(): Promise<void>;
  };
}

/** Services of other parts that workflows need. */
interface NeededServices {
  scripts: Scripts;
  versions: Versions;
  runtime: Runtime;
  tunnels: RpcTunnels;
  tracer: Tracer | undefined;
  /** Undefined: this node counts alone. */
  sharedRates?: SharedRates | undefined;
}

/** Heap of one script's isolate, which all of its instances in a cell share. */
const heapBytesMax = 256 * 1024 * 1024;
/** Waiting instances stay in their cell for a while, longer than requests do. */
const youngBytesMax = 8 * 1024 * 1024;
const dayMs = 86_400_000;

const cellSettings = ({ workflowCells }: Config) => ({
  ...cellDefaults,
  shared: workflowCells ?? Math.max(1, Math.floor(availableParallelism() / 2)),
  // No client waits for a step as it does for a response, so a step may use more CPU time at once.
  stallCpuMs: 5000,
  memoryBytesMax: heapBytesMax,
  youngBytesMax,
});

/** A version as the engine needs it for an invocation; undefined if it was deleted. */
async function invokedVersion(workflows: Workflows, rid: number, stepsMaxDefault: number) {
  const found = await workflows.version(rid);
  if (found === undefined) return undefined;
  const { version: of, workflow } = found;
  return {
    rid,
    workflowName: workflow.name,
    stepsMax: of.stepsMax ?? stepsMaxDefault,
    code: {
      accountId: workflow.accountId,
      scriptName: of.scriptName,
      scriptVersion: of.scriptVersion,
      className: of.className,
    },
  };
}

function engineOptions(
  config: Config,
  workflows: Workflows,
  logger: Logger,
): Omit<WorkflowEngineOptions, "store" | "cells"> {
  const version = async (rid: number) => invokedVersion(workflows, rid, config.workflowStepsMax);
  return {
    clock,
    version,
    async latestVersion(rid) {
      const latest = await version((await workflows.latestVersionOf(rid)).rid);
      if (latest === undefined) throw workflowErrors.versionNotFound();
      return latest;
    },
    concurrency: config.workflowConcurrency,
    limits: {
      lingerMs: config.workflowLingerMs,
      valueBytesMax: workflowLimits.valueBytesMax,
      retryDelayMs: config.workflowRetryDelayMs,
    },
    onFault: (error, what) => logger.error({ err: error }, what),
    onWarning: ({ id, accountId }, warning) =>
      logger.warn({ workflow_instance: id, account: accountId }, warning),
  };
}

async function resetAll(schedules: WorkflowSchedules, engine: WorkflowEngine): Promise<void> {
  schedules.reset();
  await engine.reset();
}

const dueWork = (schedules: WorkflowSchedules, engine: WorkflowEngine): DueWork => ({
  next: async () => earliest([schedules.nextOn(clock.now()), await engine.nextOn()]),
  async run() {
    const created = await schedules.tick(clock.now());
    const woken = await engine.look();
    return [...created, ...woken.map(({ id }) => ({ instance: id }))];
  },
  inFlight: () => engine.inFlight,
  scheduled: (untilMs) => schedules.creationsBetween(clock.now(), untilMs),
});

const dueAndExpired = (schedules: WorkflowSchedules, engine: WorkflowEngine) => ({
  due: dueWork(schedules, engine),
  expire: async () => engine.expire(),
});

async function giveBackAll(shared: SharedNodes | undefined, schedules: WorkflowSchedules): Promise<void> {
  if (shared !== undefined) await Promise.all([schedules.stop(), shared.giveBack()]);
}

async function closeAll(
  parts: readonly ({ stop(): Promise<void> } | undefined)[],
  cells: WorkflowCells,
): Promise<void> {
  for (const part of parts) await part?.stop();
  await cells.close();
}

/** Creates the workflow engine and its services. */
export function createWorkflows(
  config: Config,
  storage: Storage,
  { scripts, versions, runtime, sharedRates, tunnels, tracer }: NeededServices,
  logger: Logger,
): WorkflowServices {
  const workflows = new Workflows(storage, scripts);
  // An instance keeps the code that it started with.
  versions.onForget(scriptVersionsInUse);
  const node = randomUUID();
  const store = instanceStore(storage, node);
  const cells = new WorkflowCells({
    settings: cellSettings(config),
    tunnels,
    async prepare(code) {
      const prepared = await workflowCode(scripts, runtime)(code);
      return prepared && shared ? whileCurrent(prepared, () => engine.state.isCurrent()) : prepared;
    },
    logger,
    tracer,
  });
  const underTest = config.testApi ? new TestedInvocations(cells) : undefined;
  const options = engineOptions(config, workflows, logger);
  const engine = new WorkflowEngine({ store, cells: underTest ?? cells, ...options });
  (underTest ?? cells).listener = engine.calls;
  workflows.onGone(() => engine.workflowsGone());
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
    sharedRates,
    createRate: { workflow: config.workflowCreateRate, account: config.workflowAccountCreateRate },
  });
  const schedules = new WorkflowSchedules(workflows, workflowInstances, logger);
  return {
    workflows,
    workflowStepsMax: config.workflowStepsMax,
    workflowInstances,
    workflowEngine: {
      measures: { attempts: engine.calls.attempts, lateMs: () => engine.state.timers.lateMs },
      async start() {
        await workflows.load();
        await (shared ?? engine).start();
        schedules.start();
      },
      reset: async () => resetAll(schedules, engine),
      underTest,
      fastForward: async (rid, byMs) => fastForward(engine, rid, byMs),
      giveBack: async () => giveBackAll(shared, schedules),
      ...dueAndExpired(schedules, engine),
      close: async () => closeAll([schedules, engine, shared], cells),
    },
  };
}

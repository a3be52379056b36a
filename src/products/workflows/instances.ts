import type { SharedRates } from "../../platform/storage/nodes/shared-rates.ts";
import type { Read } from "../../platform/storage/storage.ts";
import { currentSpan } from "../../platform/tracing/spans/current.ts";
import type { Span } from "../../platform/tracing/spans/span.ts";
import { newOrderedUuid } from "../../platform/util/ids.ts";
import { CreationBudget } from "./engine/creation-budget.ts";
import { asWorkflowError, type Command } from "./engine/commands.ts";
import type { EngineState } from "./engine/engine-state.ts";
import type { WorkflowEngine } from "./engine/engine.ts";
import { scheduledId, type CronSchedule, type InstanceRow, type TriggerSource } from "./instance.ts";
import { History } from "./store/journal.ts";
import type { InstanceControl, RestartFrom } from "./engine/operations.ts";
import type { InstanceStore } from "./store/store.ts";
import * as list from "./store/store-list.ts";
import { isFinal, type Status } from "./transitions.ts";
import { encode, encodedBytes } from "./worker/codec.ts";
import {
  eventTypePattern,
  instanceIdPattern,
  reservedIdPattern,
  workflowLimits,
  type Retention,
  type Workflow,
} from "./workflow.ts";
import { workflowErrors } from "./errors.ts";
import type { Workflows } from "./workflows.ts";

export interface NewInstanceInput {
  id?: string | undefined;
  /** Text of codec.ts. */
  params: string;
  retention?: Partial<Retention> | undefined;
}

/** The outcome of each entry of a batch. */
export type Created =
  | { index: number; row: InstanceRow }
  | { index: number; id: string; skipped: "exists" | "duplicate" };

/** Forwards commands to the node that owns an instance. */
export interface Nodes {
  /** A shard of this node for new instances. A node that has just started waits for its first ones. */
  ownShard(): Promise<number>;
  perform(shard: number, command: Command): Promise<void>;
}

export interface InstancesOptions {
  read: Read;
  store: InstanceStore;
  engine: WorkflowEngine;
  nodes: Nodes;
  workflows: Workflows;
  /** Default retention, for accounts that set none. */
  retentionMs: number;
  queuedMax: number;
  /** Instances that may be created or restarted per second; 0 for no limit. */
  createRate: { workflow: number; account: number };
  /** Shares these rates with other nodes. */
  sharedRates?: Pick<SharedRates, "share"> | undefined;
}

/** Instances of other nodes send no notifications here; they are polled at this interval. */
export const lookMs = 1000;

/** Operations on instances, for the API and for scripts. */
export class Instances {
  /** Notifies when a change of an instance becomes durable on this node. */
  readonly state: EngineState;
  readonly read: Read;
  readonly #options: InstancesOptions;
  readonly #budget: CreationBudget;

  constructor(options: InstancesOptions) {
    this.state = options.engine.state;
    this.read = options.read;
    this.#options = options;
    this.#budget = new CreationBudget(options.createRate, options.sharedRates);
  }

  async create(workflow: Workflow, input: NewInstanceInput, trigger: TriggerSource): Promise<InstanceRow> {
    const [created] = await this.createBatch(workflow, [input], trigger);
    if (created === undefined || !("row" in created)) throw workflowErrors.alreadyExists();
    return created.row;
  }

  /**
   * Creates all new instances in one transaction, or none. Waits up to `waitMsMax` for the creation rate. Their traces are
   * linked to the span.
   */
  async createBatch(
    workflow: Workflow,
    inputs: readonly NewInstanceInput[],
    trigger: TriggerSource,
    { waitMsMax = 0, span = currentSpan() }: { waitMsMax?: number; span?: Span | undefined } = {},
  ): Promise<Created[]> {
    const { engine, queuedMax, read } = this.#options;
    if (inputs.length === 0)
      throw workflowErrors.invalid("batchCreate should have at least 1 instance", "/body");
    if (inputs.length > workflowLimits.batchMax)
      throw workflowErrors.invalid(
        `Expected at most ${workflowLimits.batchMax} instances in a batch but received ${inputs.length}`,
        "/body",
      );
    for (const input of inputs) this.#check(input);
    if (engine.state.scheduler.queuedCount + inputs.length > queuedMax)
      throw workflowErrors.queueFull(queuedMax);
    const ids = inputs.flatMap(({ id }) => (id === undefined ? [] : [id]));
    const count = inputs.length - ids.length + new Set(ids).size;
    const taken = await this.#budget.take(workflow, count, {
      waitMsMax,
      countExisting: async () => list.countExisting(read, workflow.rid, ids),
    });
    let made = 0;
    try {
      const created = await this.#make(workflow, inputs, trigger, span);
      made = created.filter((each) => "row" in each).length;
      return created;
    } finally {
      this.#budget.giveBack(workflow, taken - made);
    }
  }

  /** Creates the instance of a schedule, unless another node has done so. */
  async createScheduled(workflow: Workflow, schedule: CronSchedule): Promise<void> {
    await this.#make(workflow, [{ id: scheduledId(schedule), params: encode({}, "params") }], "cron");
  }

  async #make(
    workflow: Workflow,
    inputs: readonly NewInstanceInput[],
    trigger: TriggerSource,
    span?: Span,
  ): Promise<Created[]> {
    const { engine, nodes, workflows } = this.#options;
    const version = await workflows.latestVersion(workflow);
    const seen = new Set<string>();
    const all = inputs.map((input, index) => {
      const id = input.id ?? newOrderedUuid();
      const isDuplicate = seen.has(id);
      seen.add(id);
      return { index, id, input, isDuplicate };
    });
    const fresh = all.filter(({ isDuplicate }) => !isDuplicate);
    const shard = await nodes.ownShard();
    const rows = await engine.operations
      .create(
        shard,
        fresh.map(({ id, input }) => ({
          accountId: workflow.accountId,
          workflowRid: workflow.rid,
          versionRid: version.rid,
          id,
          params: input.params,
          trigger,
          creatorTrace: span?.isSampled === true ? span.header : null,
          ...this.#retention(workflow, input),
        })),
      )
      .catch((error: unknown) => {
        throw asWorkflowError(error);
      });
    if (rows.includes(null) && !(await workflows.exists(workflow)))
      throw workflowErrors.workflowNotFound(workflow.name);
    const made = new Map(fresh.map(({ index }, i) => [index, rows[i] ?? undefined]));
    return all.map(({ index, id, isDuplicate }) => {
      const row = made.get(index);
      if (row !== undefined) return { index, row };
      return { index, id, skipped: isDuplicate ? "duplicate" : "exists" };
    });
  }

  /** The current row of an instance. Lazily written state comes from memory. */
  async get(workflow: Workflow, id: string): Promise<InstanceRow> {
    const row = await list.findInstance(this.#options.read, workflow.rid, id);
    if (row === undefined) throw workflowErrors.instanceNotFound();
    return this.#upToDate(row);
  }

  /** As `get`, for an instance found before. Fails when a newer instance has taken its id. */
  async getSame(workflow: Workflow, { rid, id }: InstanceRow): Promise<InstanceRow> {
    const row = await this.get(workflow, id);
    if (row.rid !== rid) throw workflowErrors.instanceNotFound();
    return row;
  }

  /** As `get`, once the instance has ended or `timeoutMs` is over. */
  async ended(workflow: Workflow, id: string, timeoutMs: number): Promise<InstanceRow> {
    const end = performance.now() + timeoutMs;
    for (let row = await this.get(workflow, id); ; row = await this.getSame(workflow, row)) {
      if (isFinal(row.status) || performance.now() >= end) return row;
      do await this.state.ends.next(row.rid, Math.min(lookMs, end - performance.now()));
      while (this.#isRunning(row.rid) && performance.now() < end);
    }
  }

  /** As `ended`, for an instance just created on this node, whose end needs no read. */
  async outcome(workflow: Workflow, made: InstanceRow, timeoutMs: number): Promise<InstanceRow> {
    const live = this.state.peek(made.rid);
    if (live === undefined || isFinal(live.status)) return this.ended(workflow, made.id, timeoutMs);
    const hasEnded = await this.state.ends.next(made.rid, timeoutMs);
    return hasEnded && isFinal(live.status) ? live : this.getSame(workflow, made);
  }

  /** Whether the instance is in memory here, so that its end is notified. */
  #isRunning(rid: number): boolean {
    const live = this.state.peek(rid);
    return live !== undefined && !isFinal(live.status);
  }

  async history(row: InstanceRow): Promise<History> {
    return new History(await this.#options.store.journal(row.rid, row.run));
  }

  async list(
    workflow: Workflow,
    filter: list.InstanceFilter,
    page: list.InstancePage,
  ): Promise<{ instances: InstanceRow[]; total: number }> {
    const found = await list.listInstances(this.#options.read, workflow.rid, filter, page);
    return { ...found, instances: found.instances.map((row) => this.#upToDate(row)) };
  }

  async counts(workflows: readonly Workflow[]) {
    const rids = workflows.map(({ rid }) => rid);
    const { read } = this.#options;
    return {
      byStatus: await list.countByStatus(read, rids),
      triggeredOn: await list.lastTriggered(read, rids),
    };
  }

  /** The numbers of instances of all workflows by status. */
  async countAllByStatus(): Promise<Partial<Record<Status, number>>> {
    return list.countAllByStatus(this.#options.read);
  }

  async control(workflow: Workflow, id: string, action: InstanceControl): Promise<InstanceRow> {
    return this.#perform(workflow, id, (rid) => ({ do: action, rid }));
  }

  async restart(workflow: Workflow, id: string, from?: RestartFrom): Promise<InstanceRow> {
    await this.#budget.take(workflow, 1);
    return this.#perform(workflow, id, (rid) => ({
      do: "restart",
      rid,
      ...(from === undefined ? {} : { from }),
    }));
  }

  async sendEvent(workflow: Workflow, id: string, type: string, payload: string): Promise<void> {
    if (!eventTypePattern.test(type))
      throw workflowErrors.invalid(
        `Expected 1 to 100 letters, digits, "_" and "-" for type but received ${JSON.stringify(type)}`,
        "/body/type",
      );
    checkSize(payload, "payload");
    const { read, nodes } = this.#options;
    const row = await list.findInstance(read, workflow.rid, id);
    if (row === undefined) throw workflowErrors.instanceNotFound();
    await nodes.perform(row.shard, { do: "event", rid: row.rid, type, payload });
  }

  async delete(workflow: Workflow, id: string): Promise<void> {
    const { read, nodes } = this.#options;
    const row = await list.findInstance(read, workflow.rid, id);
    if (row === undefined) throw workflowErrors.instanceNotFound();
    await nodes.perform(row.shard, { do: "remove", rid: row.rid });
  }

  /** Terminates or removes all instances of a workflow, optionally only those with certain statuses. */
  async forAll(
    workflow: Workflow,
    action: "terminate" | "remove",
    statuses?: readonly Status[],
  ): Promise<number> {
    const { read, nodes } = this.#options;
    let count = 0;
    for (let after = 0; ;) {
      const which = { after, limit: 500, ...(statuses === undefined ? {} : { statuses }) };
      const some = await list.someInstances(read, workflow.rid, which);
      if (some.length === 0) return count;
      after = some.at(-1)!.rid;
      const concerned = some.filter((each) => action === "remove" || !each.isFinal);
      const done = await Promise.allSettled(
        concerned.map(async ({ rid, shard }) => nodes.perform(shard, { do: action, rid })),
      );
      // An instance that ended in the meantime also counts as done.
      count += done.filter(({ status }) => status === "fulfilled").length;
    }
  }

  async #perform(workflow: Workflow, id: string, command: (rid: number) => Command): Promise<InstanceRow> {
    const { read, nodes } = this.#options;
    const row = await list.findInstance(read, workflow.rid, id);
    if (row === undefined) throw workflowErrors.instanceNotFound();
    await nodes.perform(row.shard, command(row.rid));
    return this.getSame(workflow, row);
  }

  #upToDate(row: InstanceRow): InstanceRow {
    const live = this.#options.engine.state.peek(row.rid);
    if (live === undefined || live.run !== row.run || isFinal(live.status) || isFinal(row.status)) return row;
    return { ...row, status: live.status, startedOn: live.startedOn };
  }

  #check({ id, params }: NewInstanceInput): void {
    if (id !== undefined && (!instanceIdPattern.test(id) || reservedIdPattern.test(id)))
      throw workflowErrors.invalidId(id);
    checkSize(params, "params");
  }

  #retention(
    workflow: Workflow,
    { retention: own }: NewInstanceInput,
  ): { successRetentionMs: number; errorRetentionMs: number } {
    const account = this.#options.workflows.settings(workflow.accountId);
    const of = (kind: "successMs" | "errorMs"): number =>
      own?.[kind] ?? workflow.retention[kind] ?? account[kind] ?? this.#options.retentionMs;
    return { successRetentionMs: of("successMs"), errorRetentionMs: of("errorMs") };
  }
}

function checkSize(text: string, what: "params" | "payload"): void {
  const { valueBytesMax } = workflowLimits;
  if (text.length <= valueBytesMax / 4 || encodedBytes(text) <= valueBytesMax) return;
  throw workflowErrors.invalid(`Expected at most ${valueBytesMax} bytes for ${what}`, `/body/${what}`);
}

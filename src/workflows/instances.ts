import { RateLimiter } from "../api/rate-limit.ts";
import type { Read } from "../storage/storage.ts";
import { newOrderedUuid } from "../util/ids.ts";
import { toApiError, type Command } from "./commands.ts";
import type { Core } from "./core.ts";
import type { Engine } from "./engine.ts";
import { scheduledId, type CronSchedule, type InstanceRow, type TriggerSource } from "./instance.ts";
import { History } from "./journal.ts";
import type { Control, RestartFrom } from "./operations.ts";
import type { InstanceStore } from "./store.ts";
import * as list from "./store-list.ts";
import { isFinal, type Status } from "./transitions.ts";
import { encode, encodedBytes } from "./worker/codec.ts";
import {
  eventTypePattern,
  instanceIdPattern,
  reservedIdPattern,
  workflowErrors,
  workflowLimits,
  type Retention,
  type Workflow,
} from "./workflow.ts";
import type { Workflows } from "./workflows.ts";

export interface NewInstanceInput {
  id?: string | undefined;
  /** Text of codec.ts. */
  params: string;
  retention?: Partial<Retention> | undefined;
}

/** What became of each entry of a batch. */
export type Created =
  | { index: number; row: InstanceRow }
  | { index: number; id: string; skipped: "exists" | "duplicate" };

/** The way to the node that has an instance. */
export interface Nodes {
  /** A shard of this node, for new instances. */
  ownShard(): number;
  perform(shard: number, command: Command): Promise<void>;
}

export interface InstancesOptions {
  read: Read;
  store: InstanceStore;
  engine: Engine;
  nodes: Nodes;
  workflows: Workflows;
  /** Of an account that says nothing else. */
  retentionMs: number;
  queuedMax: number;
  /** What may be created, or restarted, in a second; 0 for no limit. */
  createRate: { workflow: number; account: number };
}

/** Instances of other nodes tell nothing here: they are looked at again after this time. */
export const lookMs = 1000;

/** What is done with instances, from the API and from scripts. */
export class Instances {
  /** Tells when something of an instance has become durable here. */
  readonly core: Core;
  readonly read: Read;
  readonly #options: InstancesOptions;
  readonly #createdOf: { workflow: RateLimiter; account: RateLimiter };

  constructor(options: InstancesOptions) {
    this.core = options.engine.core;
    this.read = options.read;
    this.#options = options;
    const { workflow, account } = options.createRate;
    this.#createdOf = {
      workflow: new RateLimiter(workflow, 1000),
      account: new RateLimiter(account, 1000),
    };
  }

  async create(workflow: Workflow, input: NewInstanceInput, trigger: TriggerSource): Promise<InstanceRow> {
    const [created] = await this.createBatch(workflow, [input], trigger);
    if (created === undefined || !("row" in created)) throw workflowErrors.alreadyExists();
    return created.row;
  }

  /** Makes all that are new, in one transaction, or none. */
  async createBatch(
    workflow: Workflow,
    inputs: readonly NewInstanceInput[],
    trigger: TriggerSource,
  ): Promise<Created[]> {
    const { engine, queuedMax } = this.#options;
    if (inputs.length === 0)
      throw workflowErrors.invalid("batchCreate should have at least 1 instance", "/body");
    if (inputs.length > workflowLimits.batchMax)
      throw workflowErrors.invalid(
        `Expected at most ${workflowLimits.batchMax} instances in a batch but received ${inputs.length}`,
        "/body",
      );
    for (const input of inputs) this.#check(input);
    if (engine.core.scheduler.queuedCount + inputs.length > queuedMax)
      throw workflowErrors.queueFull(queuedMax);
    this.#countCreated(workflow, inputs.length);
    return this.#make(workflow, inputs, trigger);
  }

  /** Makes the instance of a schedule, unless another node has. */
  async createScheduled(workflow: Workflow, schedule: CronSchedule): Promise<void> {
    await this.#make(workflow, [{ id: scheduledId(schedule), params: encode({}, "params") }], "cron");
  }

  async #make(
    workflow: Workflow,
    inputs: readonly NewInstanceInput[],
    trigger: TriggerSource,
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
    const rows = await engine.operations
      .create(
        nodes.ownShard(),
        fresh.map(({ id, input }) => ({
          accountId: workflow.accountId,
          workflowRid: workflow.rid,
          versionRid: version.rid,
          id,
          params: input.params,
          trigger,
          ...this.#retention(workflow, input),
        })),
      )
      .catch((error: unknown) => {
        throw toApiError(error);
      });
    const made = new Map(fresh.map(({ index }, i) => [index, rows[i] ?? undefined]));
    return all.map(({ index, id, isDuplicate }) => {
      const row = made.get(index);
      if (row !== undefined) return { index, row };
      return { index, id, skipped: isDuplicate ? "duplicate" : "exists" };
    });
  }

  /** The instance as it is; what is written lazily is taken from memory. */
  async get(workflow: Workflow, id: string): Promise<InstanceRow> {
    const row = await list.findInstance(this.#options.read, workflow.rid, id);
    if (row === undefined) throw workflowErrors.instanceNotFound();
    return this.#upToDate(row);
  }

  /** As `get`, when the instance is over, or the time. */
  async ended(workflow: Workflow, id: string, timeoutMs: number): Promise<InstanceRow> {
    const end = performance.now() + timeoutMs;
    for (;;) {
      const row = await this.get(workflow, id);
      if (isFinal(row.status) || performance.now() >= end) return row;
      do await this.core.ends.next(row.rid, Math.min(lookMs, end - performance.now()));
      while (this.#isUnderWay(row.rid) && performance.now() < end);
    }
  }

  /** As `ended`, of an instance that has just been made here: nothing has to be read when it ends here. */
  async outcome(workflow: Workflow, made: InstanceRow, timeoutMs: number): Promise<InstanceRow> {
    const live = this.core.peek(made.rid);
    if (live === undefined || isFinal(live.status)) return this.ended(workflow, made.id, timeoutMs);
    const hasEnded = await this.core.ends.next(made.rid, timeoutMs);
    return hasEnded ? live : this.get(workflow, made.id);
  }

  /** Whether it is in memory here, so that its end will be told. */
  #isUnderWay(rid: number): boolean {
    const live = this.core.peek(rid);
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

  async control(workflow: Workflow, id: string, action: Control): Promise<InstanceRow> {
    return this.#perform(workflow, id, (rid) => ({ do: action, rid }));
  }

  async restart(workflow: Workflow, id: string, from?: RestartFrom): Promise<InstanceRow> {
    this.#countCreated(workflow, 1);
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

  /** Terminates, or removes, all instances of a workflow; those of some statuses only where they are given. */
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
      // One that has come to its end meanwhile is what was wanted.
      count += done.filter(({ status }) => status === "fulfilled").length;
    }
  }

  async #perform(workflow: Workflow, id: string, command: (rid: number) => Command): Promise<InstanceRow> {
    const { read, nodes } = this.#options;
    const row = await list.findInstance(read, workflow.rid, id);
    if (row === undefined) throw workflowErrors.instanceNotFound();
    await nodes.perform(row.shard, command(row.rid));
    return this.get(workflow, id);
  }

  #upToDate(row: InstanceRow): InstanceRow {
    const live = this.#options.engine.core.peek(row.rid);
    if (live === undefined || live.run !== row.run || isFinal(live.status) || isFinal(row.status)) return row;
    return { ...row, status: live.status, startedOn: live.startedOn };
  }

  #countCreated(workflow: Workflow, count: number): void {
    const seconds =
      this.#createdOf.workflow.take(workflow.id, count) ||
      this.#createdOf.account.take(workflow.accountId, count);
    if (seconds > 0) throw workflowErrors.tooManyCreated(seconds);
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

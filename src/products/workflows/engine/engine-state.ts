import type { InstanceChange } from "../store/batch.ts";
import type { InvocationRunner, WorkflowCode } from "../cells/invocation-runner.ts";
import type { Clock } from "../../../platform/timers/clock.ts";
import { History, type JournalRow } from "../store/journal.ts";
import type { EventRow, InstanceRow } from "../instance.ts";
import { LiveInstance } from "./live-instance.ts";
import { InstanceScheduler } from "./scheduler.ts";
import type { InstanceStore } from "../store/store.ts";
import { Timers } from "./timers.ts";
import {
  holdsSlot,
  isFinal,
  transition,
  type TransitionEffect,
  type Input,
  type TransitionRefusal,
} from "../transitions.ts";
import type { StartMessage } from "../worker/messages.ts";
import { Watchers } from "./watchers.ts";
import { FencedError, JournalWriter, RefusedWriteError } from "../store/writer.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";

export interface RunnableVersion {
  rid: number;
  workflowName: string;
  code: WorkflowCode;
  stepsMax: number;
}

export interface WorkflowEngineOptions {
  store: InstanceStore;
  cells: InvocationRunner;
  clock: Clock;
  /**
   * `version` finds the version of an instance, undefined when its workflow is deleted; `latestVersion` is for restarts.
   */
  version(versionRid: number): Promise<RunnableVersion | undefined>;
  latestVersion(workflowRid: number): Promise<RunnableVersion>;
  concurrency: number;
  limits: StartMessage["limits"];
  onFault(error: unknown, what: string): void;
  onWarning?(instance: InstanceRow, warning: string): void;
}

/** Thrown when the status of an instance does not allow an operation. */
export class RefusedError extends Error {
  readonly reason: TransitionRefusal | "notFound" | "cannotRestart";
  constructor(reason: RefusedError["reason"], message: string = reason) {
    super(message);
    this.reason = reason;
  }
}

const saveMs = 1000;
const refusedError = {
  name: "WorkflowInternalError",
  message: "The database refuses the writes of this instance",
};

/** The instances that are in memory, with the operations on them that all parts of the engine share. */
export class EngineState {
  readonly options: WorkflowEngineOptions;
  readonly writer: JournalWriter;
  readonly scheduler: InstanceScheduler;
  readonly timers: Timers;
  /** Fencing: the instance that each running invocation may write for, by the invocation's number. */
  readonly invocations = new Map<number, LiveInstance>();
  /** `changes` fires when a change of an instance becomes durable on this node, `ends` when its end does. */
  readonly changes: Watchers;
  readonly ends: Watchers;
  /**
   * False when this node may have lost its leases without knowing, for example after the machine was
   * suspended.
   */
  isCurrent: () => boolean = () => true;
  /** Called with queued instances that have received a concurrency slot. */
  onSlot: (rid: number) => void = () => {};
  /** Called after an unawaited commit settles. */
  onSettled: (instance: LiveInstance) => void = () => {};
  /** Incremented whenever this node takes over shards. */
  loads = 0;
  readonly #live = new Map<number, LiveInstance>();
  readonly #preloading = new Set<number>();
  readonly #loading = new Map<number, Promise<LiveInstance | undefined>>();
  /** Instances that are being removed; callers see them as gone already. */
  readonly #removing = new Set<number>();
  /** Instances with changes that are only in memory. */
  readonly #unsaved = new Set<LiveInstance>();
  #isStopped = false;

  constructor(options: WorkflowEngineOptions) {
    this.options = options;
    const { store, clock } = options;
    this.changes = new Watchers(clock);
    this.ends = new Watchers(clock);
    this.writer = new JournalWriter(
      (batch, shards) => store.commit(batch, shards),
      clock,
      (error) => options.onFault(error, "the journal of workflows could not be written"),
    );
    this.scheduler = new InstanceScheduler(options.concurrency, (rid) => this.onSlot(rid));
    this.timers = new Timers(store, clock, (error, what) => options.onFault(error, what));
  }

  get now(): number {
    return this.options.clock.now();
  }
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Stops all activity. Changes that were not durable are lost. */
  stop(): void {
    this.#isStopped = true;
    this.timers.stop();
    this.invocations.clear();
    this.#live.clear();
  }

  /** Runs `use` with the instance loaded into memory; the instance stays there until `use` settles. */
  async with<T>(rid: number, use: (instance: LiveInstance) => Promise<T>): Promise<T> {
    let instance = this.#live.get(rid);
    while (instance === undefined) {
      if (this.#removing.has(rid)) throw new RefusedError("notFound");
      this.#preloading.delete(rid);
      const { loads } = this;
      instance = await this.#load(rid);
      // Rows read while shards were taken over may be older than another node's last write.
      if (loads !== this.loads) {
        instance = this.#live.get(rid);
        if (instance === undefined) continue;
      }
      instance = this.#live.get(rid) ?? instance;
      if (instance === undefined || this.#isStopped || this.#removing.has(rid))
        throw new RefusedError("notFound");
      this.#live.set(rid, instance);
    }
    instance.pins++;
    try {
      return await use(instance);
    } finally {
      instance.pins--;
      this.#release(instance);
    }
  }

  /** Loads many instances at once, ahead of operations on them. */
  async preload(rids: readonly number[]): Promise<void> {
    const { loads } = this;
    const wanted = rids.filter((rid) => !this.#live.has(rid) && !this.#loading.has(rid));
    if (wanted.length < 2) return;
    for (const rid of wanted) this.#preloading.add(rid);
    const read = await this.options.store.whole(wanted);
    for (const { row, journal, events } of read) {
      // A row is stale when its instance has changed since the read began.
      if (!this.#preloading.delete(row.rid) || loads !== this.loads || this.#isStopped) continue;
      if (!this.#live.has(row.rid)) this.#live.set(row.rid, new LiveInstance(row, journal, events));
    }
    for (const rid of wanted) this.#preloading.delete(rid);
  }

  adopt(row: InstanceRow, journal: readonly JournalRow[] = [], events: EventRow[] = []): LiveInstance {
    this.#preloading.delete(row.rid);
    const instance = new LiveInstance(row, journal, events);
    this.#live.set(row.rid, instance);
    return instance;
  }

  /** The row of an instance that is in memory. */
  peek(rid: number): Readonly<InstanceRow> | undefined {
    return this.#live.get(rid)?.row;
  }

  /** Drops an instance that another node now owns. */
  lose(instance: LiveInstance): void {
    instance.isLost = true;
    this.forget(instance);
  }

  /** Drops all instances, and their timers. */
  loseAll(): void {
    for (const instance of [...this.#live.values()]) this.lose(instance);
    this.#unsaved.clear();
    this.timers.clear();
  }

  /** Drops an instance that was removed or that another node owns. */
  forget(instance: LiveInstance): void {
    if (instance.invocation !== undefined) this.#fence(instance);
    this.scheduler.leave(instance.rid, instance.row.accountId, instance.row.workflowRid);
    if (this.#live.get(instance.rid) === instance) this.#live.delete(instance.rid);
  }

  /** Whether the instance is in memory or about to be. */
  isInUse(rid: number): boolean {
    return this.#live.has(rid) || this.#loading.has(rid);
  }

  /**
   * Removes instances of one shard with all their rows. Instances in memory end at once, and their later
   * writes are dropped. Rejects as `commit` does; with `isRefusable` also while the database accepts no
   * writes.
   */
  async remove(shard: number, rids: readonly number[], isRefusable = false): Promise<void> {
    for (const rid of rids) {
      this.#removing.add(rid);
      this.#preloading.delete(rid);
      const instance = this.#live.get(rid);
      if (instance === undefined) continue;
      instance.isRemoved = true;
      this.forget(instance);
    }
    try {
      await this.writer.append(
        shard,
        rids.map((rid): InstanceChange => ({ kind: "remove", rid })),
        isRefusable,
      );
    } finally {
      for (const rid of rids) this.#removing.delete(rid);
    }
    for (const rid of rids) {
      this.changes.notify(rid);
      this.ends.notify(rid);
    }
  }

  liveOf(shards?: ReadonlySet<number>): LiveInstance[] {
    return [...this.#live.values()].filter(({ row }) => shards?.has(row.shard) ?? true);
  }

  /** Answers a call, so that the invocation continues. */
  answer(invocation: number, call: number, text: string): void {
    if (this.isCurrent()) this.options.cells.answer(invocation, call, text);
  }

  /**
   * Makes changes durable. An instance whose shard was lost is dropped, and its promise never resolves. An
   * instance whose changes the database refuses permanently is ended.
   */
  async commit(
    instance: LiveInstance,
    changes: readonly InstanceChange[],
    isRefusable = false,
  ): Promise<void> {
    if (instance.isRemoved) throw new RefusedError("notFound");
    if (instance.isLost) throw new FencedError([]);
    if (changes.some(({ kind }) => kind === "update")) this.#unsaved.delete(instance);
    try {
      await this.writer.append(instance.row.shard, changes, isRefusable);
    } catch (error) {
      if (error instanceof FencedError) this.lose(instance);
      if (error instanceof RefusedWriteError) this.#refused(instance, error);
      throw error;
    }
    this.changes.notify(instance.rid);
    if (isFinal(instance.row.status)) this.ends.notify(instance.rid);
  }

  /** Commits changes that no caller awaits. */
  commitUnawaited(instance: LiveInstance, changes: readonly InstanceChange[]): void {
    if (changes.length === 0) return this.settle(instance);
    instance.pins++;
    unawaited(
      this.commit(instance, changes)
        .catch(() => {}) // another node owns the instance, or it has ended
        .finally(() => {
          instance.pins--;
          this.settle(instance);
        }),
    );
  }

  /** The instance in memory and its rows now differ, so it is ended. */
  #refused(instance: LiveInstance, error: RefusedWriteError): void {
    this.options.onFault(error, "a workflow instance ends because the database refuses its writes");
    if (instance.isRefused) return this.lose(instance); // the database refuses even the end of the instance
    instance.isRefused = true;
    Object.assign(instance.row, { output: null, error: JSON.stringify(refusedError) });
    this.commitUnawaited(instance, this.move(instance, "refused") ?? []);
  }

  /**
   * Saves the row of an instance within a second, unless another commit does so first. For changes that a
   * crash may lose: recovery treats waiting, queued and running instances alike.
   */
  saveLater(instance: LiveInstance): void {
    if (this.#unsaved.size === 0) this.options.clock.after(saveMs, () => this.#save());
    this.#unsaved.add(instance);
  }

  #save(): void {
    const unsaved = [...this.#unsaved].filter((instance) => this.#live.get(instance.rid) === instance);
    this.#unsaved.clear();
    if (this.#isStopped) return;
    for (const instance of unsaved) this.commit(instance, [instance.update(this.now)]).catch(() => {}); // fenced
  }

  /**
   * Moves an instance through the state machine and returns the changes to commit; undefined when the input
   * came too late.
   */
  move(instance: LiveInstance, input: Input): InstanceChange[] | undefined {
    const move = transition(instance.row.status, input);
    if (move === undefined) return undefined;
    if ("refuse" in move) throw new RefusedError(move.refuse);
    if (move.to === instance.row.status && move.effects.length === 0) return [];
    const before = instance.row.status;
    instance.row.status = move.to;
    const changes = move.effects.flatMap((effect) => this.#perform(instance, effect));
    if (holdsSlot(before) && !holdsSlot(move.to) && move.to !== "queued") {
      this.scheduler.leave(instance.rid, instance.row.accountId, instance.row.workflowRid);
    }
    return [...changes, instance.update(this.now)];
  }

  #perform(instance: LiveInstance, effect: TransitionEffect): InstanceChange[] {
    const { row } = instance;
    const { now } = this;
    switch (effect) {
      case "dispatch":
        row.startedOn ??= now;
        return [];
      case "fence":
        this.#fence(instance);
        return [];
      case "hold":
      case "release":
        if (instance.invocation !== undefined) this.options.cells.signal(instance.invocation.number, effect);
        return [];
      case "enqueueWoken":
      case "enqueueFresh":
        this.scheduler.leave(row.rid, row.accountId, row.workflowRid);
        this.#enqueue(instance, effect === "enqueueWoken" ? "woken" : "fresh");
        return [];
      case "dequeue":
        this.scheduler.leave(row.rid, row.accountId, row.workflowRid);
        return [];
      case "armTimer":
        if (row.wakeOn !== null) this.timers.arm(row.wakeOn, row.rid);
        return [];
      case "disarmTimer":
        row.wakeOn = null;
        return [];
      case "stopClocks":
        row.pausedOn = now;
        row.wakeOn = null;
        return [];
      case "startClocks": {
        const stoppedOn = row.pausedOn ?? now;
        row.pausedOn = null;
        return [
          instance.record({ kind: "shift", key: "", at: now, startedOn: stoppedOn, due: now - stoppedOn }),
        ];
      }
      case "wipe":
        row.run++;
        Object.assign(row, { createdOn: now, startedOn: null, endedOn: null, pausedOn: null, wakeOn: null });
        Object.assign(row, { expiresOn: null, crashes: 0, output: null, error: null });
        instance.history = new History();
        instance.events = [];
        return [{ kind: "wipe", rid: row.rid, run: row.run }];
      case "expire":
        row.endedOn = now;
        row.wakeOn = null;
        row.pausedOn = null;
        row.expiresOn = now + (row.status === "errored" ? row.errorRetentionMs : row.successRetentionMs);
        return [];
    }
  }

  #enqueue(instance: LiveInstance, from: "woken" | "fresh"): void {
    const { rid, accountId, workflowRid, crashes } = instance.row;
    this.scheduler.enqueue({ rid, accountId, workflowRid, isQuarantined: crashes > 0 }, from);
  }

  /** Adds an instance that is queued in the database to the queue in memory. */
  requeue(instance: LiveInstance): void {
    this.#enqueue(instance, instance.row.startedOn === null ? "fresh" : "woken");
  }

  #fence(instance: LiveInstance): void {
    if (instance.invocation === undefined) return;
    this.invocations.delete(instance.invocation.number);
    this.options.cells.signal(instance.invocation.number, "abort");
    instance.invocation = undefined;
  }

  #load(rid: number): Promise<LiveInstance | undefined> {
    let loading = this.#loading.get(rid);
    if (loading === undefined) {
      loading = this.#read(rid).finally(() => this.#loading.delete(rid));
      this.#loading.set(rid, loading);
    }
    return loading;
  }

  async #read(rid: number): Promise<LiveInstance | undefined> {
    // An instance with unsaved changes is never dropped, so its rows in the database are complete.
    const { store } = this.options;
    const [row] = await store.instances([rid]);
    if (row === undefined) return undefined;
    const [journal, events] = await Promise.all([store.journal(rid, row.run), store.events(rid)]);
    return new LiveInstance(row, journal, events);
  }

  #release(instance: LiveInstance): void {
    if (instance.pins > 0 || instance.invocation !== undefined) return;
    const { status } = instance.row;
    if (status !== "waiting" && status !== "paused" && !isFinal(status)) return;
    if (this.#live.get(instance.rid) === instance) this.#live.delete(instance.rid);
  }

  /** Ends the use of an instance at the end of its invocation, which no caller awaits. */
  settle(instance: LiveInstance): void {
    this.#release(instance);
    this.onSettled(instance);
  }
}

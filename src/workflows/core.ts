import type { Change } from "./batch.ts";
import type { Cells, Code } from "./cells.ts";
import type { Clock } from "./clock.ts";
import { History, type JournalRow } from "./journal.ts";
import type { EventRow, InstanceRow } from "./instance.ts";
import { LiveInstance } from "./live-instance.ts";
import { Scheduler } from "./scheduler.ts";
import type { InstanceStore } from "./store.ts";
import { Timers } from "./timers.ts";
import { holdsSlot, isFinal, transition, type Effect, type Input, type Refusal } from "./transitions.ts";
import type { StartMessage } from "./worker/messages.ts";
import { Watchers } from "./watchers.ts";
import { FencedError, JournalWriter, RefusedWriteError } from "./writer.ts";

export interface Version {
  rid: number;
  workflowName: string;
  code: Code;
  stepsMax: number;
}

export interface EngineOptions {
  store: InstanceStore;
  cells: Cells;
  clock: Clock;
  /** The version that an instance runs, and the one that a restarted one begins with. */
  version(versionRid: number): Promise<Version>;
  latestVersion(workflowRid: number): Promise<Version>;
  concurrency: number;
  limits: StartMessage["limits"];
  onFault(error: unknown, what: string): void;
  onWarning?(instance: InstanceRow, warning: string): void;
}

/** Thrown when an operation is not possible for an instance as it is. */
export class RefusedError extends Error {
  readonly reason: Refusal | "notFound" | "cannotRestart";
  constructor(reason: RefusedError["reason"], message: string = reason) {
    super(message);
    this.reason = reason;
  }
}

const saveMs = 1000;
const refusedError = {
  name: "WorkflowInternalError",
  message: "The database refuses what this instance has to write",
};

/** The instances that something happens to, and what every part of the engine does with them. */
export class Core {
  readonly options: EngineOptions;
  readonly writer: JournalWriter;
  readonly scheduler: Scheduler;
  readonly timers: Timers;
  /** By the number of the segment that may write for it: the fence. */
  readonly segments = new Map<number, LiveInstance>();
  /** Of what has become durable of an instance here, and of ends that have. */
  readonly changes: Watchers;
  readonly ends: Watchers;
  /** Whether this node surely still has its instances; one that stood still may have lost them, and not know yet. */
  isCurrent: () => boolean = () => true;
  /** Is told of queued instances that have got a concurrency slot. */
  onSlot: (rid: number) => void = () => {};
  /** Is told of instances of which something has been done that nobody awaited. */
  onSettled: (instance: LiveInstance) => void = () => {};
  /** Changes whenever shards are taken over. */
  loads = 0;
  readonly #live = new Map<number, LiveInstance>();
  readonly #preloading = new Set<number>();
  readonly #loading = new Map<number, Promise<LiveInstance | undefined>>();
  /** What has moved in memory only. */
  readonly #unsaved = new Set<LiveInstance>();
  #isStopped = false;

  constructor(options: EngineOptions) {
    this.options = options;
    const { store, clock } = options;
    this.changes = new Watchers(clock);
    this.ends = new Watchers(clock);
    this.writer = new JournalWriter(
      (batch, shards) => store.commit(batch, shards),
      clock,
      (error) => options.onFault(error, "the journal could not be written"),
    );
    this.scheduler = new Scheduler(options.concurrency, (rid) => this.onSlot(rid));
    this.timers = new Timers(store, clock, (error, what) => options.onFault(error, what));
  }

  get now(): number {
    return this.options.clock.now();
  }
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Nothing happens any more; what was not durable has not happened. */
  stop(): void {
    this.#isStopped = true;
    this.timers.stop();
    this.segments.clear();
    this.#live.clear();
  }

  /** Runs `use` with the instance in memory, from its durable state; it stays there as long as it is used. */
  async with<T>(rid: number, use: (instance: LiveInstance) => Promise<T>): Promise<T> {
    let instance = this.#live.get(rid);
    while (instance === undefined) {
      this.#preloading.delete(rid);
      const { loads } = this;
      instance = await this.#load(rid);
      // What was read while shards were taken over may be what it was before another node had it.
      if (loads !== this.loads) {
        instance = this.#live.get(rid);
        if (instance === undefined) continue;
      }
      instance = this.#live.get(rid) ?? instance;
      if (instance === undefined || this.#isStopped) throw new RefusedError("notFound");
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

  /** Reads instances that something is about to happen to, many at once. */
  async preload(rids: readonly number[]): Promise<void> {
    const { loads } = this;
    const wanted = rids.filter((rid) => !this.#live.has(rid) && !this.#loading.has(rid));
    if (wanted.length < 2) return;
    for (const rid of wanted) this.#preloading.add(rid);
    const read = await this.options.store.whole(wanted);
    for (const { row, journal, events } of read) {
      // What something has happened to meanwhile is not any more what was read.
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

  /** The instance as it is in memory, if it is there. */
  peek(rid: number): Readonly<InstanceRow> | undefined {
    return this.#live.get(rid)?.row;
  }

  /** Drops an instance that another node has. */
  lose(instance: LiveInstance): void {
    instance.isLost = true;
    this.forget(instance);
  }

  /** Drops an instance that is no longer ours, or no longer at all. */
  forget(instance: LiveInstance): void {
    if (instance.segment !== undefined) this.#fence(instance);
    this.scheduler.leave(instance.rid, instance.row.accountId, instance.row.workflowRid);
    if (this.#live.get(instance.rid) === instance) this.#live.delete(instance.rid);
  }

  liveOf(shards: ReadonlySet<number>): LiveInstance[] {
    return [...this.#live.values()].filter((instance) => shards.has(instance.row.shard));
  }

  /** Lets a segment go on. */
  answer(segment: number, call: number, text: string): void {
    if (this.isCurrent()) this.options.cells.answer(segment, call, text);
  }

  /**
   * Makes changes durable. An instance whose shard is gone is dropped, and what waits for it never happens. One of which the
   * database takes something never is ended.
   */
  async commit(instance: LiveInstance, changes: readonly Change[], isRefusable = false): Promise<void> {
    if (instance.isLost) throw new FencedError([]);
    if (changes.some(({ kind }) => kind === "update")) this.#unsaved.delete(instance);
    try {
      await this.writer.append(instance.row.shard, changes, isRefusable);
    } catch (error) {
      if (error instanceof FencedError) this.lose(instance);
      if (error instanceof RefusedWriteError) this.#refused(instance, error);
      throw error;
    }
    this.changes.tell(instance.rid);
    if (isFinal(instance.row.status)) this.ends.tell(instance.rid);
  }

  /** Commits what nobody waits for. */
  commitUnawaited(instance: LiveInstance, changes: readonly Change[]): void {
    if (changes.length === 0) return this.settle(instance);
    instance.pins++;
    this.commit(instance, changes)
      .catch(() => {}) // the instance is another node's, or has ended
      .finally(() => {
        instance.pins--;
        this.settle(instance);
      });
  }

  /** What is in memory of the instance is not what will be in the database: it goes no further. */
  #refused(instance: LiveInstance, error: RefusedWriteError): void {
    this.options.onFault(error, "an instance ends, because the database refuses what it has to write");
    if (instance.isRefused) return this.lose(instance); // even that it has ended
    instance.isRefused = true;
    Object.assign(instance.row, { output: null, error: JSON.stringify(refusedError) });
    this.commitUnawaited(instance, this.move(instance, "refused") ?? []);
  }

  /**
   * Makes what the instance is durable in a while, unless something else does so before. For moves on which nothing
   * depends: after a crash what was waiting or queued goes on as well as what was running.
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

  /** Moves an instance through the state machine; returns the changes to commit. Undefined when it came too late. */
  move(instance: LiveInstance, input: Input): Change[] | undefined {
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

  #perform(instance: LiveInstance, effect: Effect): Change[] {
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
        if (instance.segment !== undefined) this.options.cells.signal(instance.segment.number, effect);
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
    this.scheduler.enqueue({ rid, accountId, workflowRid, isSuspect: crashes > 0 }, from);
  }

  /** Puts an instance that is queued in the database into the queue here. */
  requeue(instance: LiveInstance): void {
    this.#enqueue(instance, instance.row.startedOn === null ? "fresh" : "woken");
  }

  #fence(instance: LiveInstance): void {
    if (instance.segment === undefined) return;
    this.segments.delete(instance.segment.number);
    this.options.cells.signal(instance.segment.number, "abort");
    instance.segment = undefined;
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
    // An instance with changes on their way to the database is never let go: what is there is the whole of it.
    const { store } = this.options;
    const [row] = await store.instances([rid]);
    if (row === undefined) return undefined;
    const [journal, events] = await Promise.all([store.journal(rid, row.run), store.events(rid)]);
    return new LiveInstance(row, journal, events);
  }

  #release(instance: LiveInstance): void {
    if (instance.pins > 0 || instance.segment !== undefined) return;
    const { status } = instance.row;
    if (status !== "waiting" && status !== "paused" && !isFinal(status)) return;
    if (this.#live.get(instance.rid) === instance) this.#live.delete(instance.rid);
  }

  /** For the end of a segment: nobody awaits it, so the instance is let go here. */
  settle(instance: LiveInstance): void {
    this.#release(instance);
    this.onSettled(instance);
  }
}

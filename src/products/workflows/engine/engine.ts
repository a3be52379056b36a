import { EngineState, RefusedError, type WorkflowEngineOptions } from "./engine-state.ts";
import { Operations } from "./operations.ts";
import type { InstanceRow } from "../instance.ts";
import { isFinal } from "../transitions.ts";
import type { LiveInstance } from "./live-instance.ts";
import type { WholeInstance } from "../store/store.ts";
import { InvocationCalls } from "./invocation-calls.ts";
import type { StandbyInvocations } from "./standby-invocations.ts";
import { InvocationStarter } from "./invocation-starter.ts";
import { FencedError } from "../store/writer.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";

const drainMs = 5000;
const readAtOnce = 200;
const sweepMs = 1000;
const sweepRowsMax = 1000;

/** The workflow engine of one node: instances, timers, queue, journal, and the operations on instances. */
export class WorkflowEngine {
  readonly state: EngineState;
  readonly operations: Operations;
  /** Receives the messages of cells. */
  readonly calls: InvocationCalls;
  readonly #standbys: StandbyInvocations;
  /** The shards that this node holds; undefined for a single node. */
  #shards: Set<number> | undefined;
  /** True while instances of deleted workflows may remain. */
  #hasOrphans = true;
  #expired = 0;

  constructor(options: WorkflowEngineOptions) {
    this.state = new EngineState(options);
    this.calls = new InvocationCalls(this.state);
    const starter = new InvocationStarter(this.state);
    this.#standbys = starter.standbys;
    this.operations = new Operations(this.state, this.calls, starter.standbys);
    this.state.onSlot = (rid) => {
      unawaited(starter.dispatch(rid));
    };
    this.state.timers.onDue = (rids) => {
      unawaited(this.#wake(rids));
    };
    this.state.timers.onNear = (rid) => {
      this.#expect(rid).catch(() => {}); // without a standby invocation the instance starts cold
    };
  }

  /** Recovers the instances of the last process. With `shards`, only theirs; `adopt` adds more. */
  async start(shards?: readonly number[]): Promise<void> {
    this.#shards = shards === undefined ? undefined : new Set(shards);
    await this.#recover(shards);
    await this.state.timers.keepHorizon(() => this.#held());
    this.#sweepLater();
  }

  /** Waits until pending writes are durable, at most 5 s. Unwritten work is repeated after the next start. */
  async stop(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.state.options.clock.after(drainMs, resolve);
    await Promise.race([this.state.writer.drain(), promise]);
    cancel();
    this.state.stop();
  }

  async adopt(shards: readonly number[]): Promise<void> {
    this.state.loads++;
    this.abandon(shards); // memory may hold state of an earlier term
    for (const shard of shards) this.#shards?.add(shard);
    await this.#recover(shards);
    await this.state.timers.load(shards);
    this.#hasOrphans = true;
  }

  /**
   * Called after workflows were deleted, here or on another node. Their instances are removed within a
   * second.
   */
  workflowsGone(): void {
    this.#hasOrphans = true;
    this.#standbys.dropAll();
  }

  /** Drops everything in memory, and recovers the instances that the database has now. */
  async reset(): Promise<void> {
    this.state.loads++;
    this.state.loseAll();
    this.#standbys.dropAll();
    this.#hasOrphans = true;
    await this.#recover(undefined);
    await this.state.timers.load(undefined);
  }

  /** Drops the instances of shards that another node takes over. */
  abandon(shards: readonly number[]): void {
    for (const shard of shards) this.#shards?.delete(shard);
    for (const instance of this.state.liveOf(new Set(shards))) this.state.lose(instance);
  }

  /** When the first waiting instance continues; undefined if none waits. */
  async nextOn(): Promise<number | undefined> {
    const [first] = await this.state.options.store.waking(Number.MAX_SAFE_INTEGER, this.#held());
    return first?.wakeOn;
  }

  /** Continues the instances that are due now, and returns them. */
  async look(): Promise<InstanceRow[]> {
    const due = await this.state.options.store.waking(this.state.now + 1, this.#held());
    const rids = due.map(({ rid }) => rid);
    const rows = await this.state.options.store.instances(rids);
    await Promise.all(rids.map(async (rid) => this.operations.due(rid)));
    return rows;
  }

  /** The instances that run or are about to, and those with changes that are not durable yet. */
  get inFlight(): number {
    const isRunning = ({ row: { status }, pins }: LiveInstance): boolean =>
      pins > 0 || (status !== "waiting" && status !== "paused" && !isFinal(status));
    return this.state.liveOf().filter(isRunning).length;
  }

  async #wake(rids: readonly number[]): Promise<void> {
    const { options } = this.state;
    await this.state.preload(rids).catch(() => {}); // each instance is then read on its own and reports its error
    for (const rid of rids) {
      unawaited(
        this.operations.due(rid).catch((error: unknown) => {
          if (error instanceof RefusedError || error instanceof FencedError) return;
          options.onFault(error, "a workflow instance could not be woken; trying again");
          options.clock.after(1000, () => this.state.timers.onDue([rid]));
        }),
      );
    }
  }

  /** While all instances sleep, no cell may be running, and the first to wake would wait for its boot. */
  async #expect(rid: number): Promise<void> {
    const [row] = await this.state.options.store.instances([rid]);
    if (row?.status === "waiting") this.#standbys.add(row.versionRid);
  }

  #held(): readonly number[] | undefined {
    return this.#shards === undefined ? undefined : [...this.#shards];
  }

  async #recover(shards: readonly number[] | undefined): Promise<void> {
    const { store } = this.state.options;
    const rids = (await store.live(shards)).map(({ rid }) => rid);
    for (let at = 0; at < rids.length; at += readAtOnce) {
      for (const whole of await store.whole(rids.slice(at, at + readAtOnce))) this.#resume(whole);
    }
  }

  #resume({ row, journal, events }: WholeInstance): void {
    const instance = this.state.adopt(row, journal, events);
    if (row.status === "queued") {
      this.state.requeue(instance);
      return;
    }
    const changes = this.state.move(instance, "lost") ?? [];
    this.state.commit(instance, changes).catch(() => {});
  }

  /** Removes instances of deleted workflows and instances past their retention, a thousand at a time. */
  #sweepLater(afterMs = sweepMs): void {
    this.state.options.clock.after(afterMs, () => {
      if (this.state.isStopped) return;
      unawaited(
        this.#sweep().then(
          (count) => this.#sweepLater(count === sweepRowsMax ? 0 : sweepMs),
          () => this.#sweepLater(), // the database failed: retry later
        ),
      );
    });
  }

  /** Removes all instances that are past their retention. Resolves with the number of all since the start. */
  async expire(): Promise<number> {
    for (let before = -1; before < this.#expired;) {
      before = this.#expired;
      await this.#sweep();
    }
    return this.#expired;
  }

  async #sweep(): Promise<number> {
    const mayBeOrphans = this.#hasOrphans;
    this.#hasOrphans = false;
    try {
      // Instances of other nodes' shards are left to their owners.
      const orphans = mayBeOrphans ? await this.state.options.store.orphaned(sweepRowsMax, this.#held()) : [];
      const expired = await this.state.options.store.expired(this.state.now, sweepRowsMax, this.#held());
      // An instance in use may be about to restart.
      const unused = expired.filter(({ rid }) => !this.state.isInUse(rid));
      await this.#remove([...orphans, ...unused]);
      this.#expired += unused.length;
      if (orphans.length === sweepRowsMax) this.#hasOrphans = true;
      return Math.max(orphans.length, expired.length);
    } catch (error) {
      this.#hasOrphans ||= mayBeOrphans;
      throw error;
    }
  }

  async #remove(instances: readonly { rid: number; shard: number }[]): Promise<void> {
    const byShard = Map.groupBy(instances, ({ shard }) => shard);
    const removals = [...byShard].map(async ([shard, some]) => {
      const rids = some.map(({ rid }) => rid);
      await this.state.remove(shard, rids, true);
    });
    await Promise.all(removals);
  }
}

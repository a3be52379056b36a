import { Core, RefusedError, type EngineOptions } from "./core.ts";
import { Operations } from "./operations.ts";
import type { WholeInstance } from "./store.ts";
import { SegmentCalls } from "./segment-calls.ts";
import type { Standbys } from "./standbys.ts";
import { Starts } from "./starts.ts";
import { FencedError } from "./writer.ts";

const drainMs = 5000;
const readAtOnce = 200;
const sweepMs = 1000;
const sweepRowsMax = 1000;

/** The workflow engine of one node: its instances, timers, queue and journal, and what may be done to them. */
export class Engine {
  readonly core: Core;
  readonly operations: Operations;
  /** What cells report to. */
  readonly calls: SegmentCalls;
  readonly #standbys: Standbys;
  /** The shards that this node holds; undefined where it is the only one. */
  #shards: Set<number> | undefined;

  constructor(options: EngineOptions) {
    this.core = new Core(options);
    this.calls = new SegmentCalls(this.core);
    const starts = new Starts(this.core);
    this.#standbys = starts.standbys;
    this.operations = new Operations(this.core, this.calls, starts.standbys);
    this.core.onSlot = (rid) => void starts.dispatch(rid);
    this.core.timers.onDue = (rids) => void this.#wake(rids);
    this.core.timers.onNear = (rid) => void this.#expect(rid).catch(() => {}); // it starts from nothing
  }

  /** Takes up what was going on when the last process ended. With `shards`, only theirs: others come with `adopt`. */
  async start(shards?: readonly number[]): Promise<void> {
    this.#shards = shards === undefined ? undefined : new Set(shards);
    await this.#recover(shards);
    await this.core.timers.keepHorizon(() => this.#held());
    this.#sweepLater();
  }

  /** What is under way is made durable, unless the database does not take it: then it will be done again. */
  async stop(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.core.options.clock.after(drainMs, resolve);
    await Promise.race([this.core.writer.drain(), promise]);
    cancel();
    this.core.stop();
  }

  async adopt(shards: readonly number[]): Promise<void> {
    this.core.loads++;
    this.abandon(shards); // what is known of them from an earlier term is not true any more
    for (const shard of shards) this.#shards?.add(shard);
    await this.#recover(shards);
    await this.core.timers.load(shards);
  }

  /** Another node has the shards now, or will have: their instances stop here. */
  abandon(shards: readonly number[]): void {
    for (const shard of shards) this.#shards?.delete(shard);
    for (const instance of this.core.liveOf(new Set(shards))) this.core.lose(instance);
  }

  async #wake(rids: readonly number[]): Promise<void> {
    const { options } = this.core;
    await this.core.preload(rids).catch(() => {}); // then each is read by itself, and says what is wrong
    for (const rid of rids) {
      this.operations.due(rid).catch((error: unknown) => {
        if (error instanceof RefusedError || error instanceof FencedError) return;
        options.onFault(error, "an instance could not be woken");
        options.clock.after(1000, () => this.core.timers.onDue([rid]));
      });
    }
  }

  /** While everything sleeps nothing may be loaded, not even a cell: what wakes first would wait for it. */
  async #expect(rid: number): Promise<void> {
    const [row] = await this.core.options.store.instances([rid]);
    if (row?.status === "waiting") this.#standbys.add(row.versionRid);
  }

  #held(): readonly number[] | undefined {
    return this.#shards === undefined ? undefined : [...this.#shards];
  }

  async #recover(shards: readonly number[] | undefined): Promise<void> {
    const { store } = this.core.options;
    const rids = (await store.live(shards)).map(({ rid }) => rid);
    for (let at = 0; at < rids.length; at += readAtOnce) {
      for (const whole of await store.whole(rids.slice(at, at + readAtOnce))) this.#resume(whole);
    }
  }

  #resume({ row, journal, events }: WholeInstance): void {
    const instance = this.core.adopt(row, journal, events);
    if (row.status === "queued") {
      this.core.requeue(instance);
      return;
    }
    const changes = this.core.move(instance, "lost") ?? [];
    void this.core.commit(instance, changes).catch(() => {});
  }

  /** Removes ended instances whose retention is over, a thousand at a time. */
  #sweepLater(afterMs = sweepMs): void {
    this.core.options.clock.after(afterMs, () => {
      if (this.core.isStopped) return;
      void this.#sweep().then(
        (count) => this.#sweepLater(count === sweepRowsMax ? 0 : sweepMs),
        () => this.#sweepLater(), // the database is away: later
      );
    });
  }

  async #sweep(): Promise<number> {
    const expired = await this.core.options.store.expired(this.core.now, sweepRowsMax, this.#held());
    const byShard = Map.groupBy(expired, ({ shard }) => shard);
    await Promise.all(
      [...byShard].map(([shard, rows]) =>
        this.core.writer.append(
          shard,
          rows.map(({ rid }) => ({ kind: "remove", rid })),
          true,
        ),
      ),
    );
    return expired.length;
  }
}

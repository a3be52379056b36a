import type { Logger } from "pino";
import type { Read } from "../../../platform/storage/storage.ts";
import type { WorkflowEngine } from "../engine/engine.ts";
import * as store from "../store/store-leases.ts";

/** Number of shards that nodes divide the instances into; migrations/0005-workflows.ts creates them. */
export const shardCount = 64;
const beatMs = 2000;
/** Shortest interval at which free shards are looked at. */
const lookMsMin = 200;
/** A node that could not renew its leases stops two seconds before they expire. */
const giveUpMs = (store.leaseSeconds - 2) * 1000;

/**
 * The shards that this node holds on PostgreSQL. Every node renews its leases, takes free shards up to its
 * fair share, and releases the rest.
 */
export class Leases {
  readonly #read: Read;
  readonly #node: string;
  readonly #engine: WorkflowEngine;
  readonly #logger: Logger;
  readonly #held = new Set<number>();
  #renewedAt = 0;
  /** True when the last query got no response. */
  isCutOff = false;
  #beating: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #next = 0;
  #lookedAt = 0;
  /** Whether the node has given its shards to others, except one at most. */
  #isLeaving = false;

  constructor(read: Read, node: string, engine: WorkflowEngine, logger: Logger) {
    this.#read = read;
    this.#node = node;
    this.#engine = engine;
    this.#logger = logger;
  }

  async start(): Promise<void> {
    this.#renewedAt = performance.now();
    this.#engine.state.writer.onFenced = (shards) => this.#abandon(shards);
    this.#engine.state.isCurrent = () => this.#isCurrent();
    await this.#engine.start([]);
    await this.#beat();
    this.#timer = setInterval(() => this.#beatNow(), beatMs);
    this.#timer.unref();
  }

  /** Takes free shards without waiting for the next beat: their node is about to end. */
  lookSoon(): void {
    if (this.#isLeaving || performance.now() - this.#lookedAt < lookMsMin) return;
    this.#lookedAt = performance.now();
    this.#beatNow();
  }

  /**
   * Releases the shards. One without instances in memory stays until `stop`, for new instances: a node that is
   * about to end still serves calls.
   */
  async giveBack(): Promise<void> {
    this.#isLeaving = true;
    await this.#beating;
    const kept = this.held.find((shard) => this.#engine.state.liveOf(new Set([shard])).length === 0);
    this.#abandon(this.held.filter((shard) => shard !== kept));
    await this.#engine.state.writer.drain();
    await store.leave(this.#read, this.#node, kept);
  }

  /** Releases the leases, so that other nodes can take the shards at once. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#isLeaving = true;
    await this.#beating;
    await store.leave(this.#read, this.#node).catch(() => {}); // otherwise the leases expire
  }

  get held(): readonly number[] {
    return [...this.#held];
  }

  holds(shard: number): boolean {
    return this.#held.has(shard);
  }

  /** A shard for a new instance, round robin. Undefined while the node holds none. */
  any(): number | undefined {
    const held = this.held;
    return held.length === 0 ? undefined : held[this.#next++ % held.length];
  }

  #beatNow(): void {
    this.#beating ??= this.#beat()
      .catch((error: unknown) => this.#failed(error))
      .finally(() => (this.#beating = undefined));
  }

  async #beat(): Promise<void> {
    const began = performance.now();
    const nodes = this.#isLeaving ? undefined : await store.beat(this.#read, this.#node);
    const renewed = await store.renew(this.#read, this.#node);
    this.#renewedAt = began;
    this.isCutOff = false;
    // After a failover to a server that lagged behind, the database may know an earlier term.
    const { terms } = this.#engine.state.writer;
    const still = new Set(renewed.flatMap(({ shard, term }) => (terms.get(shard) === term ? [shard] : [])));
    this.#abandon(this.held.filter((shard) => !still.has(shard)));
    if (nodes === undefined || this.#isLeaving) return;
    // Held in the database but not here: this node dropped them when it could not renew them in time.
    const givenUp = renewed.map(({ shard }) => shard).filter((shard) => !this.#held.has(shard));
    await this.#adopt(await store.retake(this.#read, this.#node, givenUp));
    const share = Math.ceil(shardCount / nodes);
    if (this.#held.size > share) await this.#release(this.held.slice(share));
    else if (this.#held.size < share) {
      await this.#adopt(await store.take(this.#read, this.#node, share - this.#held.size));
    }
    await store.forgetOldCommands(this.#read);
  }

  async #adopt(leases: readonly { shard: number; term: number }[]): Promise<void> {
    if (leases.length === 0) return;
    for (const { shard, term } of leases) this.#engine.state.writer.terms.set(shard, term);
    const shards = leases.map(({ shard }) => shard);
    await this.#engine.adopt(shards);
    for (const shard of shards) this.#held.add(shard);
    this.#logger.info({ shards: shards.length }, "took over instances of workflows");
  }

  async #release(shards: readonly number[]): Promise<void> {
    this.#abandon(shards);
    await this.#engine.state.writer.drain();
    await store.release(this.#read, this.#node, shards);
  }

  #abandon(shards: readonly number[]): void {
    if (shards.length === 0) return;
    for (const shard of shards) this.#held.delete(shard);
    this.#engine.abandon(shards);
  }

  /** A node that was suspended drops its instances before any of their code continues. */
  #isCurrent(): boolean {
    if (performance.now() - this.#renewedAt <= giveUpMs) return true;
    this.#abandon(this.held);
    return false;
  }

  #failed(error: unknown): void {
    this.#logger.warn({ err: error }, "the leases on workflows could not be renewed");
    this.isCutOff = true;
    this.#isCurrent();
  }
}

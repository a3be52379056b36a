import { unawaited } from "../util/uncaught.ts";
import { shardCount, shardOf } from "./shard.ts";

/** A shard that this node has taken. */
export interface TakenShard {
  shard: number;
  /** Differs each time that the shard is taken: a statement that arrives late has no effect. */
  term: number;
  /** The last lease under which its objects could run; null for none. */
  last: number | null;
}
type Term = Pick<TakenShard, "shard" | "term">;

/** The right of this node to write what belongs to a shard. Statements compare it with the database. */
export type ShardRight = Term & { lease: number };

/** All leases that have not ended, and the owners of shards. */
export interface LeaseView {
  nodes: readonly { id: number; address: string; leaseMs: number; beats: number; isLeaving: boolean }[];
  owners: ReadonlyMap<number, { owner: number; term: number }>;
}

/** The leases of all nodes, in the database. */
export interface LeaseStore {
  /**
   * Begins a lease, and ends those that this node had before. Returns its number, which no other lease ever has. `attempt`
   * grows; an attempt that arrives after a later one fails.
   */
  begin(leaseMs: number, attempt: number): Promise<number>;
  /** Renews a lease. Undefined if it has ended. */
  beat(id: number): Promise<LeaseView | undefined>;
  /** Ends a lease, unless it was renewed since it had these beats. Its shards become free. */
  end(id: number, beats: number): Promise<void>;
  /** Takes free shards, up to a number, `first` before others. None if the lease has ended. */
  take(id: number, count: number, first: readonly number[]): Promise<TakenShard[]>;
  /** Notes that objects of shards can run under the lease from now on. Rejects if it has ended. */
  confirm(id: number, shards: readonly Term[]): Promise<void>;
  release(id: number, shards: readonly Term[]): Promise<void>;
  /** The node gets no share any more. */
  leave(id: number): Promise<void>;
  /** Ends the lease of this node. */
  finish(id: number): Promise<void>;
}

/** The part of a node that runs the objects of its shards. */
export interface ShardHolder {
  /** Shards whose data on this disk may be the newest. */
  known(): readonly number[];
  /** Shards with objects that may be running. */
  inUse(): ReadonlySet<number>;
  /** Checks that shards can be adopted. Rejects if that is not possible now. */
  prepare(): Promise<void>;
  /** Makes shards ready. Their objects are not called before. May be repeated after a failure. */
  adopt(shards: readonly TakenShard[], id: number): Promise<void>;
  /** Ends the objects of shards. Resolves when they have ended, and everything that they wrote is shipped. */
  leave(shards: ReadonlySet<number>): Promise<void>;
  /** Kills all processes of objects, at once. Resolves when they are gone. */
  kill(): Promise<void>;
}

/** The clock of a node, which no one sets, and its timers. */
export interface LeaseClock {
  now(): number;
  after(ms: number, work: () => void): () => void;
}

export interface LeaseTimes {
  /** A lease that was not renewed for so long is ended by another node. */
  leaseMs: number;
  /** A node ends its objects so long before. */
  marginMs: number;
  beatMs: number;
}

/** The times of a lease, of which the others get only the length. */
export const leaseTimes = (leaseMs: number): LeaseTimes => ({
  leaseMs,
  marginMs: leaseMs / 5,
  beatMs: leaseMs / 10,
});

type Seen = Map<number, { beats: number; since: number }>;

interface HeldLease {
  id: number;
  /** Until then no other node can have ended the lease. */
  deadline: number;
  /** The shards whose objects may be called here, with their terms. */
  readonly shards: Map<number, number>;
  /** Shards that were taken, and are not ready. */
  readonly taken: Map<number, TakenShard>;
  /** The terms of shards whose objects end, and store what the database does not know yet. */
  readonly ending: Map<number, number>;
}

/**
 * The lease of a node on shards of objects. A node renews it ten times as often as it must. Others end it when they have seen no renewal for
 * the time of a lease by their own clocks; the node itself stops earlier, because it counts from before the renewal was
 * sent. So no two clocks are compared. A lease that has ended never comes back: the node begins another one.
 */
export class ShardLease {
  readonly #store: LeaseStore;
  readonly #holder: ShardHolder;
  readonly #clock: LeaseClock;
  readonly #times: LeaseTimes;
  readonly #failed: (error: unknown) => void;
  #held: HeldLease | undefined;
  #killing: Promise<void> = Promise.resolve();
  #stopTimer: (() => void) | undefined;
  #beating: Promise<void> | undefined;
  #working: Promise<void> | undefined;
  #stopDeadline: (() => void) | undefined;
  /** When each lease of another node was first seen with its number of beats. */
  #seen: Seen = new Map();
  #view: LeaseView = { nodes: [], owners: new Map() };
  #isLeaving = false;
  #attempts = 0;
  #givingBack: Promise<void> | undefined;
  /** Shards that were made ready here since the start. */
  takenOver = 0;
  readonly #listeners = new Set<() => void>();

  constructor(
    store: LeaseStore,
    holder: ShardHolder,
    clock: LeaseClock,
    failed: (error: unknown) => void,
    times: LeaseTimes,
  ) {
    this.#store = store;
    this.#holder = holder;
    this.#clock = clock;
    this.#failed = failed;
    this.#times = times;
  }

  /** The number of the lease, while it is sure that no other node has ended it. */
  get current(): number | undefined {
    if (this.#held !== undefined) this.#check(this.#held);
    return this.#held?.id;
  }

  #check(held: HeldLease): void {
    if (this.#clock.now() >= held.deadline) this.#lose(held);
  }

  /** Whether objects of a namespace may be called here now. */
  owns(namespace: string): boolean {
    return this.#held?.shards.has(shardOf(namespace)) === true && this.current !== undefined;
  }

  /** The right to write what belongs to a namespace, also while its shard is being taken or given back; undefined for none. */
  rightTo(namespace: string): ShardRight | undefined {
    const shard = shardOf(namespace);
    const held = this.#held;
    const term = held?.shards.get(shard) ?? held?.taken.get(shard)?.term ?? held?.ending.get(shard);
    const lease = this.current;
    return term === undefined || lease === undefined ? undefined : { lease, shard, term };
  }

  get shards(): readonly number[] {
    return this.current === undefined ? [] : [...this.#held!.shards.keys()];
  }

  /** Time since the last renewal that was answered was sent; undefined without a lease. */
  get renewedMsAgo(): number | undefined {
    const { leaseMs, marginMs } = this.#times;
    return this.#held && this.#clock.now() - (this.#held.deadline - leaseMs + marginMs);
  }

  /** Where the owner of a namespace is, as far as is known; undefined for none, or this node. */
  addressOf(namespace: string): { id: number; address: string } | undefined {
    const owner = this.#view.owners.get(shardOf(namespace))?.owner;
    return owner === this.#held?.id ? undefined : this.#view.nodes.find(({ id }) => id === owner);
  }

  /** Whether a lease of another node had not ended when this node looked last. */
  isLive(id: number): boolean {
    return this.#view.nodes.some((node) => node.id === id);
  }

  /** Calls `listener` when owners have changed. Returns the function that ends that. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  start(): void {
    const next = (): void => {
      const again = (): void => {
        if (this.#stopTimer !== undefined) this.#stopTimer = this.#clock.after(this.#times.beatMs, next);
      };
      unawaited(this.renew().finally(again));
    };
    this.#stopTimer = this.#clock.after(0, next);
  }

  /** Renews the lease, and begins to take or release shards. */
  async renew(): Promise<void> {
    this.#beating ??= this.#beat()
      .catch((error: unknown) => this.#failed(error))
      .finally(() => (this.#beating = undefined));
    return this.#beating;
  }

  /** Ends the objects, ships what they wrote, and gives the shards to others. */
  async giveBack(): Promise<void> {
    this.#givingBack ??= this.#giveBack();
    return this.#givingBack;
  }

  async #giveBack(): Promise<void> {
    this.#isLeaving = true;
    await this.#working;
    const held = this.#held;
    if (held === undefined) return;
    await this.#store.leave(held.id);
    await this.#release(held, [...held.shards.keys(), ...held.taken.keys()]);
  }

  async stop(): Promise<void> {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    this.#isLeaving = true;
    await this.#givingBack?.catch(() => {}); // its caller knows
    await this.#working;
    await this.#beating;
    const held = this.#held;
    if (held !== undefined) this.#lose(held);
    await this.#killing;
    // Otherwise others end it when its time is over.
    if (held !== undefined) await this.#store.finish(held.id).catch(() => {});
  }

  async #beat(): Promise<void> {
    const held = this.#held ?? (await this.#begin());
    if (held === undefined) return;
    const sent = this.#clock.now();
    const before = new Map(held.shards);
    const view = await this.#store.beat(held.id);
    if (this.current !== held.id) return;
    if (view === undefined || isForgotten(held, before, view)) return this.#lose(held);
    this.#extend(held, sent);
    this.#view = view;
    this.#notify();
    if (this.#isLeaving) return;
    // Renewals do not wait for it.
    this.#working ??= this.#work(held, view)
      .catch((error: unknown) => this.#failed(error))
      .finally(() => (this.#working = undefined));
  }

  async #begin(): Promise<HeldLease | undefined> {
    await this.#killing.catch((error: unknown) => {
      this.#kill(); // the next attempt to begin waits for it
      throw error;
    });
    if (this.#isLeaving) return undefined;
    const sent = this.#clock.now();
    const id = await this.#store.begin(this.#times.leaseMs, ++this.#attempts);
    const held: HeldLease = {
      id,
      deadline: -Infinity,
      shards: new Map(),
      taken: new Map(),
      ending: new Map(),
    };
    this.#held = held;
    this.#extend(held, sent);
    return this.current === id ? held : undefined;
  }

  #extend(held: HeldLease, sent: number): void {
    const { leaseMs, marginMs } = this.#times;
    held.deadline = Math.max(held.deadline, sent + leaseMs - marginMs);
    this.#stopDeadline?.();
    const left = held.deadline - this.#clock.now();
    this.#stopDeadline = this.#clock.after(Math.max(0, left), () => this.#check(held));
  }

  /** The lease may have ended: nothing may run any more, and nothing that is on its way may leave. */
  #lose(held: HeldLease): void {
    if (this.#held !== held) return;
    this.#held = undefined;
    this.#view = { ...this.#view, nodes: this.#view.nodes.filter(({ id }) => id !== held.id) };
    this.#stopDeadline?.();
    this.#kill();
    this.#notify();
  }

  #kill(): void {
    this.#killing = this.#holder.kill();
    unawaited(this.#killing.catch(() => {})); // no lease begins before it succeeds
  }

  async #work(held: HeldLease, view: LeaseView): Promise<void> {
    await this.#endLost(held, view);
    if (this.current !== held.id) return;
    await this.#holder.prepare();
    if (this.current !== held.id) return;
    const nodes = view.nodes.filter(({ isLeaving }) => !isLeaving).length;
    const share = Math.ceil(shardCount / Math.max(1, nodes));
    const inUse = this.#holder.inUse();
    // Those with running objects stay first.
    const own = [...held.shards.keys()].toSorted((a, b) => Number(inUse.has(b)) - Number(inUse.has(a)));
    if (own.length > share) return this.#release(held, own.slice(share));
    await this.#releaseLost(held, view);
    const wanted = share - own.length - held.taken.size;
    if (wanted > 0 && view.owners.size < shardCount)
      for (const each of await this.#store.take(held.id, wanted, this.#holder.known()))
        held.taken.set(each.shard, each);
    await this.#adopt(held);
  }

  /** Ends leases of other nodes that were not renewed for too long. */
  async #endLost(held: HeldLease, { nodes }: LeaseView): Promise<void> {
    const now = this.#clock.now();
    const seen: Seen = new Map();
    for (const { id, beats, leaseMs } of nodes) {
      if (id === held.id) continue;
      const before = this.#seen.get(id);
      const entry = before?.beats === beats ? before : { beats, since: now };
      seen.set(id, entry);
      if (now - entry.since > leaseMs) await this.#store.end(id, beats);
    }
    this.#seen = seen;
  }

  /** Frees shards that it took without hearing of it. */
  async #releaseLost(held: HeldLease, { owners }: LeaseView): Promise<void> {
    const lost = [...owners].flatMap(([shard, { owner, term }]) =>
      owner === held.id && !held.shards.has(shard) && !held.taken.has(shard) ? [{ shard, term }] : [],
    );
    if (lost.length > 0) await this.#store.release(held.id, lost);
  }

  async #adopt(held: HeldLease): Promise<void> {
    const taken = [...held.taken.values()];
    if (taken.length === 0 || this.current !== held.id) return;
    await this.#holder.adopt(taken, held.id);
    if (this.current !== held.id) return;
    await this.#store.confirm(held.id, taken);
    if (this.current !== held.id) return;
    for (const { shard, term } of taken) {
      held.taken.delete(shard);
      held.shards.set(shard, term);
    }
    this.takenOver += taken.length;
    const own = taken.map(({ shard, term }) => [shard, { owner: held.id, term }] as const);
    this.#view = { nodes: this.#view.nodes, owners: new Map([...this.#view.owners, ...own]) };
    this.#notify();
  }

  async #release(held: HeldLease, shards: readonly number[]): Promise<void> {
    if (shards.length === 0) return;
    const terms = shards.map((shard) => ({
      shard,
      term: held.shards.get(shard) ?? held.taken.get(shard)!.term,
    }));
    for (const { shard, term } of terms) {
      held.shards.delete(shard);
      held.taken.delete(shard);
      held.ending.set(shard, term);
    }
    this.#notify();
    try {
      await this.#holder.leave(new Set(shards));
    } catch (error) {
      for (const each of terms) held.taken.set(each.shard, { ...each, last: held.id });
      throw error;
    } finally {
      for (const shard of shards) held.ending.delete(shard);
    }
    if (this.current === held.id) await this.#store.release(held.id, terms);
  }

  #notify(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

/** Whether the database, after a failover, does not know that shards are this lease's, which it had before the beat and has now. */
const isForgotten = (
  { id, shards }: HeldLease,
  before: ReadonlyMap<number, number>,
  { owners }: LeaseView,
): boolean =>
  [...before].some(([shard, term]) => {
    const known = owners.get(shard);
    return shards.get(shard) === term && (known?.owner !== id || known.term !== term);
  });

import {
  ShardLease,
  leaseTimes,
  type LeaseStore,
  type LeaseView,
  type ShardHolder,
  type TakenShard,
} from "./lease.ts";
import { unawaited } from "../util/uncaught.ts";
import { shardCount } from "./shard.ts";

/* Nodes that share a database, in simulated time: messages are late or lost, nodes are suspended and killed. */

const leaseMs = 10_000;
const namespaceOf = (shard: number): string => shard.toString(16).padStart(8, "0") + "0".repeat(24);

/** Random numbers from a seed. */
export function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Row {
  id: number;
  node: number;
  run: number;
  attempt: number;
  beats: number;
  leaves: boolean;
  hasEnded: boolean;
}

/** The database: each statement is atomic. */
class SimulatedDatabase {
  readonly rows = new Map<number, Row>();
  readonly shards = Array.from({ length: shardCount }, () => ({
    owner: null as number | null,
    term: 0,
    last: null as number | null,
    /** The values that were added to the log. */
    log: [] as number[],
  }));

  begin(node: number, run: number, attempt: number): number {
    const own = [...this.rows.values()].filter((row) => row.node === node && !row.hasEnded);
    if (own.some((row) => row.run === run && row.attempt >= attempt)) throw new Error("late");
    for (const { id } of own) this.end(id);
    const id = this.rows.size + 1;
    this.rows.set(id, { id, node, run, attempt, beats: 0, leaves: false, hasEnded: false });
    return id;
  }

  beat(id: number): LeaseView | undefined {
    if (!this.isLive(id)) return undefined;
    this.rows.get(id)!.beats++;
    const live = [...this.rows.values()].filter(({ hasEnded }) => !hasEnded);
    return {
      nodes: live.map((row) => ({ ...row, address: "", leaseMs, isLeaving: row.leaves })),
      owners: new Map(
        this.shards.flatMap(({ owner, term }, shard) =>
          owner === null ? [] : [[shard, { owner, term }] as const],
        ),
      ),
    };
  }

  take(id: number, count: number, first: readonly number[]): TakenShard[] {
    if (!this.isLive(id)) return [];
    const free = this.shards.flatMap(({ owner }, shard) => (owner === null ? [shard] : []));
    free.sort((a, b) => Number(first.includes(b)) - Number(first.includes(a)));
    return free.slice(0, count).map((shard) => {
      const row = this.shards[shard]!;
      row.owner = id;
      row.term++;
      return { shard, term: row.term, last: row.last };
    });
  }

  /** The rows of shards that a lease has had since it took them. */
  held(id: number, shards: readonly { shard: number; term: number }[]): SimulatedDatabase["shards"] {
    const rows = shards.map(({ shard, term }) => ({ row: this.shards[shard]!, term }));
    return rows.flatMap(({ row, term }) => (row.owner === id && row.term === term ? [row] : []));
  }

  end(id: number): void {
    this.rows.get(id)!.hasEnded = true;
    for (const shard of this.shards) if (shard.owner === id) shard.owner = null;
  }

  isLive(id: number): boolean {
    return this.rows.get(id)?.hasEnded === false;
  }
}

/** A node, whose disk survives its process. */
class SimulatedNode {
  readonly number: number;
  readonly #world: World;
  readonly #rate: number;
  readonly disk = new Map<number, number>();
  readonly known = new Map<number, number[]>();
  /** A new one with each start; what an earlier process awaited never happens. */
  run = 0;
  suspendedUntil = 0;
  lease: ShardLease | undefined;
  #isAdding = false;

  constructor(world: World, number: number) {
    this.#world = world;
    this.number = number;
    this.#rate = 1 + (world.random() - 0.5) / 50;
  }

  start(): void {
    const run = ++this.run;
    this.#isAdding = false;
    const clock = {
      now: (): number => this.#world.now * this.#rate,
      after: (ms: number, work: () => void): (() => void) => {
        let isOff = false;
        this.#world.at(ms / this.#rate, () => this.#do(run, () => (isOff ? undefined : work())));
        return () => (isOff = true);
      },
    };
    this.lease = new ShardLease(this.#store(run), this.#holder(run), clock, () => {}, leaseTimes(leaseMs));
    this.lease.start();
  }

  crash(): void {
    this.run++;
    this.lease = undefined;
  }

  /** Writes to an object, if it is this node's, and adds that to the log. */
  act(): void {
    const shard = Math.floor(this.#world.random() * shardCount);
    if (this.suspendedUntil > this.#world.now || this.#isAdding) return;
    if (this.lease?.owns(namespaceOf(shard)) !== true) return;
    const lease = this.lease.current!;
    this.#world.acted(shard, lease);
    const value = (this.disk.get(shard) ?? 0) + 1;
    this.disk.set(shard, value);
    this.#isAdding = true;
    const { run } = this;
    const add = this.#ask(run, (database) => {
      if (!database.isLive(lease)) throw new Error("ended");
      this.#world.added(shard, value);
    });
    const added = async (): Promise<void> => {
      try {
        await add;
        if (this.lease?.current === lease) this.#world.acknowledged(shard, value);
      } catch {
        // neither added nor acknowledged, as far as is known
      } finally {
        if (this.run === run) this.#isAdding = false;
      }
    };
    unawaited(added());
  }

  #do(run: number, work: () => void): void {
    if (this.run !== run) return;
    const { suspendedUntil } = this;
    if (suspendedUntil > this.#world.now)
      this.#world.at(suspendedUntil - this.#world.now, () => this.#do(run, work));
    else work();
  }

  async #sleep(run: number, ms: number): Promise<void> {
    return new Promise((resolve) => this.#world.at(ms, () => this.#do(run, resolve)));
  }

  /** A statement: it arrives late or not at all, and so does its answer. */
  async #ask<T>(run: number, work: (database: SimulatedDatabase) => T): Promise<T> {
    const { random, database } = this.#world;
    const isLost = (): boolean => !this.#world.isCalm && random() < 0.03;
    const lateMs = (): number =>
      !this.#world.isCalm && random() < 0.02 ? random() * 25_000 : random() * 200;
    return new Promise((resolve, reject) => {
      const fail = (): void => this.#do(run, () => reject(new Error("lost")));
      if (isLost()) return this.#world.at(500, fail);
      this.#world.at(lateMs(), () => {
        let answer: () => void;
        try {
          const result = work(database);
          answer = () => resolve(result);
        } catch (error) {
          answer = () => reject(error);
        }
        if (isLost()) this.#world.at(500, fail);
        else this.#world.at(lateMs(), () => this.#do(run, answer));
      });
    });
  }

  #store(run: number): LeaseStore {
    const ask = async <T>(work: (database: SimulatedDatabase) => T): Promise<T> => this.#ask(run, work);
    return {
      begin: async (_leaseMs, attempt) =>
        ask((database) => {
          // As the table of nodes says: a process of this node that was killed may have sent it.
          if (this.run !== run) throw new Error("another run");
          return database.begin(this.number, run, attempt);
        }),
      beat: async (id) => ask((database) => database.beat(id)),
      end: async (id, beats) =>
        ask((database) => {
          if (database.isLive(id) && database.rows.get(id)!.beats === beats) database.end(id);
        }),
      take: async (id, count, first) => ask((database) => database.take(id, count, first)),
      confirm: async (id, shards) =>
        ask((database) => {
          if (!database.isLive(id)) throw new Error("ended");
          for (const row of database.held(id, shards)) row.last = id;
        }),
      release: async (id, shards) =>
        ask((database) => {
          for (const row of database.held(id, shards)) row.owner = null;
        }),
      leave: async (id) =>
        ask((database) => {
          database.rows.get(id)!.leaves = true;
        }),
      finish: async (id) => ask((database) => database.end(id)),
    };
  }

  #holder(run: number): ShardHolder {
    const { random } = this.#world;
    const isNewest = ({ shard, last }: TakenShard): boolean =>
      last === null || this.known.get(shard)?.includes(last) === true;
    return {
      known: () => [...this.known.keys()],
      inUse: () => new Set(),
      prepare: async () => {
        if (random() < 0.05) throw new Error("away");
      },
      adopt: async (taken, id) => {
        await this.#sleep(run, random() * 1000);
        if (random() < 0.05) throw new Error("failed");
        const logs = await this.#ask(run, ({ shards }) => shards.map(({ log }) => log.at(-1) ?? 0));
        if (this.lease?.current !== id) throw new Error("lost");
        for (const each of taken) {
          if (!isNewest(each)) this.disk.set(each.shard, logs[each.shard]!);
          this.known.set(each.shard, isNewest(each) && each.last !== null ? [each.last, id] : [id]);
        }
      },
      leave: async () => {
        await this.#sleep(run, random() * 1000);
        while (this.#isAdding) await this.#sleep(run, 50);
        if (random() < 0.1) throw new Error("failed");
      },
      kill: async () => this.#sleep(run, random() * 500),
    };
  }
}

/** The time, the database, and the proof. */
export class World {
  now = 0;
  /** Whether messages arrive. */
  isCalm = false;
  readonly random: () => number;
  readonly database = new SimulatedDatabase();
  readonly violations: string[] = [];
  readonly counts = { acts: 0, owners: 0, acknowledged: 0 };
  readonly #events: { at: number; n: number; work: () => void }[] = [];
  #n = 0;
  /** The leases that have acted last, by shard. */
  readonly #acting = new Map<number, number>();
  readonly #acknowledged = new Map<number, number>();

  constructor(seed: number) {
    this.random = randomOf(seed);
  }

  at(ms: number, work: () => void): void {
    const event = { at: this.now + Math.max(0, ms), n: this.#n++, work };
    let low = 0;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.#events[middle]!;
      if (other.at > event.at || (other.at === event.at && other.n > event.n)) low = middle + 1;
      else high = middle;
    }
    this.#events.splice(low, 0, event);
  }

  /** An object runs only where the database says: no other node can have it then. */
  acted(shard: number, lease: number): void {
    this.counts.acts++;
    const { owner } = this.database.shards[shard]!;
    if (owner !== lease) this.violations.push(`${this.now}: ${lease} ran ${shard} of ${owner}`);
    if (this.#acting.get(shard) !== lease) this.counts.owners++;
    this.#acting.set(shard, lease);
  }

  /** Every addition goes on from the one before. */
  added(shard: number, value: number): void {
    const { log } = this.database.shards[shard]!;
    if (value <= (log.at(-1) ?? 0)) this.violations.push(`${this.now}: ${shard} got ${value} twice`);
    if (value <= (this.#acknowledged.get(shard) ?? 0))
      this.violations.push(`${this.now}: ${shard} lost ${value}`);
    log.push(value);
  }

  acknowledged(shard: number, value: number): void {
    this.counts.acknowledged++;
    this.#acknowledged.set(shard, value);
  }

  async run(ms: number): Promise<void> {
    const end = this.now + ms;
    for (;;) {
      const event = this.#events.pop();
      if (event === undefined || event.at > end) return;
      this.now = event.at;
      event.work();
      for (let i = 0; i < 30; i++) await Promise.resolve(); // all that follows from it
    }
  }
}

/** Runs nodes for some minutes, with suspensions and crashes, and then until each shard has an owner. */
export async function simulate(seed: number): Promise<World> {
  const world = new World(seed);
  const { random } = world;
  const nodes = Array.from({ length: 2 + Math.floor(random() * 3) }, (_, i) => new SimulatedNode(world, i));
  for (const node of nodes) world.at(random() * 5000, () => node.start());
  const disturbedMs = 180_000;
  const disturb = (node: SimulatedNode): void => {
    if (world.now > disturbedMs) return;
    const kind = random();
    if (kind < 0.4) node.suspendedUntil = world.now + random() * 40_000;
    else if (kind < 0.7) {
      node.crash();
      world.at(random() * 20_000, () => node.start());
    } else if (kind < 0.8) unawaited(Promise.resolve(node.lease?.giveBack()).catch(() => {}));
    world.at(random() * 40_000, () => disturb(node));
  };
  const act = (node: SimulatedNode): void => {
    for (let i = 0; i < 8; i++) node.act();
    world.at(50 + random() * 50, () => act(node));
  };
  for (const node of nodes) {
    world.at(random() * 40_000, () => disturb(node));
    act(node);
  }
  await world.run(disturbedMs);
  world.isCalm = true;
  for (const node of nodes) {
    node.crash(); // also those that have given their shards back
    node.start();
  }
  await world.run(90_000);
  const isOwned = world.database.shards.filter(({ owner }) => owner !== null).length;
  if (isOwned < shardCount) world.violations.push(`${shardCount - isOwned} shards have no owner in the end`);
  return world;
}

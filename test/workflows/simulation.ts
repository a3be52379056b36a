import { WorkflowEngine } from "../../src/products/workflows/engine/engine.ts";
import type { InstanceStore } from "../../src/products/workflows/store/store.ts";
import { isFinal } from "../../src/products/workflows/transitions.ts";
import { decode } from "../../src/products/workflows/worker/codec.ts";
import { SimulatedCells } from "./simulated-cells.ts";
import { interpret, randomProgram, type Observer, type Program } from "./simulated-programs.ts";
import { World } from "./simulated-world.ts";

const concurrency = 3;
const chaosMs = 20_000;
/** Long programs are checked again after each of these intervals. */
const calmMs = 200_000;
const calmsMax = 20;

/** Thrown with the broken invariant. */
export class BrokenInvariant extends Error {}

/** One seed: random programs, operations and faults, then a calm phase in which all instances must end. */
export async function simulate(seed: number, store: InstanceStore): Promise<World> {
  const world = new World(seed);
  const simulation = new Simulation(world, store);
  try {
    await simulation.run();
  } catch (error) {
    throw Object.assign(error as Error, { world });
  }
  return world;
}

interface Known {
  rid: number;
  program: Program;
}

/** Observations of one run of an instance; a restart starts another run. */
interface Seen {
  acknowledged: Map<string, string>;
  events: Map<string, string>;
  isOver: boolean;
}

class Simulation implements Observer {
  readonly #world: World;
  readonly #store: InstanceStore;
  readonly #instances = new Map<string, Known>();
  #engine!: WorkflowEngine;
  #cells!: SimulatedCells;
  #isAlive = true;
  #isCalm = false;
  #events = 0;
  #crashes = 0;
  #broken: string | undefined;
  readonly #seen = new Map<string, Seen>();
  /** Instances in the database. */
  readonly #durable = new Set<string>();

  constructor(world: World, store: InstanceStore) {
    this.#world = world;
    this.#store = store;
  }

  async run(): Promise<void> {
    this.#boot();
    const check = (): void => this.#check();
    for (let i = 0; i < 6; i++) this.#world.at(this.#world.random() * 3000, () => void this.#create(`i${i}`));
    for (let i = 0; i < 30; i++) this.#world.at(this.#world.random() * chaosMs, () => this.#disturb());
    await this.#world.runUntil(chaosMs, check);
    this.#isCalm = true;
    await this.#restartEngine(0);
    // Resumes paused instances and lets all waits time out; then all must have ended.
    for (let calm = 0; calm < calmsMax; calm++) {
      const start = chaosMs + calm * calmMs;
      for (let at = start + 1000; at < start + calmMs; at += 20_000) {
        this.#world.at(at, () => this.#resumeAll());
      }
      await this.#world.runUntil(start + calmMs, check);
      if (await this.#isOver()) break;
    }
    await this.#final();
  }

  async #isOver(): Promise<boolean> {
    const rows = await this.#store.instances([...this.#instances.values()].map(({ rid }) => rid));
    return rows.every(({ status }) => isFinal(status));
  }

  #boot(): void {
    let isAlive = true;
    this.#world.log("boot");
    const cells = new SimulatedCells(this.#world, (start, invocation) => ({
      run: (_event, step) => {
        const known = this.#instances.get(start.instanceId)!;
        if (!this.#durable.has(start.instanceId))
          this.#break(`${start.instanceId} ran before it was durable`);
        const run = this.#engine.state.invocations.get(invocation)?.row.run ?? 0;
        return interpret(known.program, step, `${start.instanceId}#${run}`, {
          observer: this,
          isCurrent: () => isAlive && this.#engine.state.invocations.has(invocation),
        });
      },
    }));
    const version = {
      rid: 1,
      workflowName: "w",
      stepsMax: 10_000,
      code: { accountId: "a", scriptName: "s", scriptVersion: "v", className: "W" },
    };
    const engine = new WorkflowEngine({
      store: { ...this.#store, commit: (batch) => this.#commit(() => isAlive, batch) },
      cells,
      clock: this.#world.clock(() => isAlive),
      version: async () => version,
      latestVersion: async () => version,
      concurrency,
      limits: { lingerMs: 250, valueBytesMax: 2 ** 20, retryDelayMs: 1000 },
      onFault: (error, what) => this.#world.log(`fault: ${what}: ${String(error)}`),
    });
    cells.listener = engine.calls;
    this.#engine = engine;
    this.#cells = cells;
    this.#kill = () => {
      isAlive = false;
      engine.state.stop();
    };
    engine.start().catch((error: unknown) => this.#break(`start failed: ${String(error)}`));
  }
  #kill = (): void => {};

  async #commit(
    isAlive: () => boolean,
    batch: Parameters<InstanceStore["commit"]>[0],
  ): Promise<(number | null)[]> {
    const wait = (): Promise<void> =>
      new Promise((resolve) => this.#world.after(this.#isCalm ? 1 : this.#world.delay(), resolve));
    await wait();
    if (!isAlive()) return new Promise(() => {});
    if (!this.#isCalm && this.#world.chance(0.02)) throw new Error("disk full");
    const created = await this.#store.commit(batch, []);
    for (const { id } of batch.creates) this.#durable.add(id);
    this.#world.log(
      `commit ${[...batch.updates].map(([rid, state]) => `${rid}=${state.status}`).join(" ")} ${batch.journal.map((row) => `${row.rid}.${row.kind}:${row.key}`).join(" ")}`,
    );
    if (!this.#isCalm && this.#world.chance(0.01)) {
      // Durable, but without a response.
      this.#world.log("crash after commit");
      void this.#restartEngine(this.#world.random() * 2000);
      return new Promise(() => {});
    }
    await wait();
    return isAlive() ? created : new Promise(() => {});
  }

  async #restartEngine(afterMs: number): Promise<void> {
    if (!this.#isAlive && !this.#isCalm) return;
    this.#isAlive = false;
    this.#kill();
    this.#world.log("crash");
    const crash = ++this.#crashes;
    this.#world.after(afterMs, () => {
      if (crash !== this.#crashes) return; // it crashed again before it had started
      this.#isAlive = true;
      this.#boot();
    });
  }

  async #create(id: string): Promise<void> {
    const program: Program = {
      kind: "sequence",
      of: Array.from({ length: 4 }, () => randomProgram(this.#world)),
    };
    const known: Known = {
      rid: 0,
      program,
    };
    this.#instances.set(id, known);
    const make = async (): Promise<void> => {
      if (!this.#isAlive) return void this.#world.after(500, () => void make());
      const input = {
        accountId: "a",
        workflowRid: 1,
        versionRid: 1,
        id,
        params: 'j"p"',
        trigger: "api" as const,
        creatorTrace: null,
        successRetentionMs: 1e12,
        errorRetentionMs: 1e12,
      };
      const again = this.#world.after(5000, () => void (known.rid === 0 ? make() : undefined));
      try {
        const [row] = await this.#engine.operations.create(0, [input]);
        if (row !== null && row !== undefined) known.rid = row.rid;
        else if (known.rid === 0) known.rid = await this.#find(id);
        this.#world.log(`created ${id} rid ${known.rid}`);
        again();
      } catch (error) {
        this.#world.log(`create ${id} refused: ${String(error)}`);
      }
    };
    await make();
  }

  async #find(id: string): Promise<number> {
    const rows = await this.#store.instances(Array.from({ length: 500 }, (_, i) => i + 1));
    return rows.findLast((row) => row.id === id)?.rid ?? 0;
  }

  #disturb(): void {
    const { chance, pick, integer } = this.#world;
    if (chance(0.12)) return void this.#restartEngine(this.#world.random() * 2000);
    if (chance(0.15)) {
      this.#world.log("cell dies");
      return this.#cells.kill(chance(0.3));
    }
    if (chance(0.1)) {
      const jump = pick([-3000, 1000, 60_000]);
      this.#world.log(`clock jumps ${jump}`);
      this.#world.skew += jump;
      return;
    }
    const [id, known] = pick([...this.#instances, ["", undefined] as const]);
    if (known === undefined || known.rid === 0 || !this.#isAlive) return;
    const { operations } = this.#engine;
    const name = pick([
      "pause",
      "resume",
      "terminate",
      "restart",
      "event",
      "event",
      "event",
      "resume",
    ] as const);
    this.#world.log(`${name} ${id}`);
    const operate = async (): Promise<void> => {
      if (name === "event") {
        const payload = `e${++this.#events}`;
        await operations.sendEvent(known.rid, `t${integer(2)}`, `j"${payload}"`);
      } else if (name === "restart") {
        await operations.restart(known.rid);
      } else {
        const row = await operations.control(known.rid, name);
        if (row.status === "terminated") this.#seenOf(`${id}#${row.run}`).isOver = true;
      }
      this.#world.log(`${name} ${id} done`);
    };
    operate().catch((error: unknown) => this.#world.log(`${name} ${id} refused: ${String(error)}`));
  }

  #resumeAll(): void {
    for (const known of this.#instances.values()) {
      if (known.rid !== 0) this.#engine.operations.control(known.rid, "resume").catch(() => {});
    }
  }

  /** By instance and run. */
  #seenOf(run: string): Seen {
    let seen = this.#seen.get(run);
    if (seen === undefined)
      this.#seen.set(run, (seen = { acknowledged: new Map(), events: new Map(), isOver: false }));
    return seen;
  }

  // Reports of programs.

  begun(id: string, key: string): void {
    const seen = this.#seenOf(id);
    if (seen.acknowledged.has(key)) this.#break(`${id}: ${key} ran again after its result was acknowledged`);
    if (seen.isOver) this.#break(`${id}: ${key} began after the instance was over`);
  }
  returned(id: string, key: string, value: string): void {
    const { acknowledged } = this.#seenOf(id);
    const before = acknowledged.get(key);
    if (before !== undefined && before !== value)
      this.#break(`${id}: ${key} was ${before} and is now ${value}`);
    acknowledged.set(key, value);
  }
  received(id: string, key: string, event: string): void {
    const { events } = this.#seenOf(id);
    const other = events.get(event);
    if (other !== undefined && other !== key)
      this.#break(`${id}: event ${event} went to ${other} and ${key}`);
    events.set(event, key);
  }
  token(): number {
    return this.#world.integer(1e9);
  }
  after(ms: number): Promise<void> {
    return new Promise((resolve) => this.#world.after(ms, resolve));
  }

  #break(message: string): void {
    this.#world.log(`BROKEN ${message}`);
    this.#broken ??= message;
  }

  #check(): void {
    const { scheduler, invocations } = this.#engine.state;
    if (scheduler.runningCount > concurrency) this.#break(`${scheduler.runningCount} instances run at once`);
    const rids = [...invocations.values()].map((instance) => instance.rid);
    if (new Set(rids).size < rids.length) this.#break("an instance has two invocations");
    if (this.#broken !== undefined) throw new BrokenInvariant(this.#broken);
  }

  async #final(): Promise<void> {
    for (const [id, known] of this.#instances) {
      const [row] = known.rid === 0 ? [] : await this.#store.instances([known.rid]);
      if (row === undefined) throw new BrokenInvariant(`${id} is lost`);
      if (!isFinal(row.status)) throw new BrokenInvariant(`${id} is still ${row.status}`);
      const journal = await this.#store.journal(row.rid, row.run);
      const outcomes = journal.filter(({ kind }) => ["done", "event", "timeout"].includes(kind));
      const decided = outcomes.map(({ key }) => key);
      const twice = decided.find((key, i) => decided.indexOf(key) !== i);
      if (twice !== undefined) throw new BrokenInvariant(`${id}: ${twice} has two outcomes`);
      if (row.status !== "complete") continue;
      const output = decode(row.output!) as Record<string, string>;
      for (const entry of journal) {
        if (entry.kind !== "done") continue;
        const expected = decode(entry.value!) as string;
        const key = entry.key.slice(3);
        if (output[key] !== undefined && output[key] !== expected)
          throw new BrokenInvariant(`${id}: ${key} is ${output[key]} but its journal says ${expected}`);
      }
    }
  }
}

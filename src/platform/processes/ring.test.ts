import { mkdtempSync, openSync, closeSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { fc } from "../../../test/helpers/properties.ts";
import { messageLine, type RingRecord } from "./protocol.ts";
import { RingFollower } from "./ring-follower.ts";
import { lineBytesMax, ringBytes, RingReader, RingWriter } from "./ring.ts";

function newPath(): string {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "ring");
}

it("a reader gets every line in order, over the seam, while it lags by less than the ring holds", () => {
  const lengths = fc.array(fc.integer({ min: 1, max: 60_000 }), { minLength: 1, maxLength: 80 });
  const path = newPath();
  const writer = new RingWriter(path);
  const reader = new RingReader(path);
  let position = writer.end;
  let n = 0;
  fc.assert(
    fc.property(fc.array(lengths, { maxLength: 4 }), (batches) => {
      for (const batch of batches) {
        const kept: string[] = [];
        let bytes = 0;
        for (const length of batch) {
          if ((bytes += length + 8) > ringBytes - lineBytesMax) break;
          kept.push(`${n++} ${"é".repeat(length >> 1)}\n`);
          writer.append(kept.at(-1)!, true);
        }
        const lines = reader.take(position)!;
        expect(lines.map(({ text }) => text)).toEqual(kept);
        position = lines.at(-1)?.end ?? position;
        expect(position).toBe(writer.end);
      }
    }),
    { numRuns: 30 },
  );
});

it("a reader that lags further loses its place, and a line that is too long is refused", () => {
  const path = newPath();
  const writer = new RingWriter(path);
  const reader = new RingReader(path);
  for (let n = 0; n < 3; n++) writer.append(`${"x".repeat(lineBytesMax - 1)}\n`, true);
  expect(reader.take(0)?.length).toBe(3);
  writer.append("y\n", true);
  expect(reader.take(0)).toBe(undefined);
  expect(() => writer.append("x".repeat(lineBytesMax + 1), true)).toThrow(RangeError);
});

it("a head that is half-written is not current", () => {
  const path = newPath();
  const writer = new RingWriter(path);
  const reader = new RingReader(path);
  const end = writer.append("x\n", true);
  expect(reader.isDone(end)).toBe(true);
  const fd = openSync(path, "r+");
  writeSync(fd, new Uint8Array(Float64Array.of(end + 2, end + 2).buffer), 0, 16, 0);
  closeSync(fd);
  expect(reader.isDone(end)).toBe(false);
  expect(reader.head.due).toBe(Infinity);
});

/*
 * A simulation: main changes a database and the ring, edge processes follow, and all of them are stopped and killed at
 * any moment. A request must see every change that main had acknowledged before it began.
 */

const keys = 4;
const edges = 3;

type State = number[];

/** Faults of the simulated processes. */
interface Faults {
  /** It serves without comparing numbers. */
  isBlind?: boolean;
  /** A new main begins another ring. */
  isForgetful?: boolean;
  /** A new main does not let edge processes read again what an earlier one may have changed without a word. */
  isTrusting?: boolean;
}

type Step =
  | { do: "change"; key: number; dies: "no" | "before" | "within" | "after" }
  | { do: "many"; dies: boolean }
  | { do: "due" | "kill" | "start" | "listen" | "fill" }
  | { do: "ask" | "advance" | "restart"; edge: number };

const anEdge = fc.nat({ max: edges - 1 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("change" as const),
      key: fc.nat({ max: keys - 1 }),
      dies: fc.constantFrom("no", "no", "no", "before", "within", "after"),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("many" as const), dies: fc.boolean() }) },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constantFrom("due", "kill", "start", "start", "listen", "listen") }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("fill" as const) }) },
  {
    weight: 12,
    arbitrary: fc.record({ do: fc.constantFrom("ask", "advance", "advance", "restart"), edge: anEdge }),
  },
) as fc.Arbitrary<Step>;

class Simulation {
  readonly #path: string;
  readonly #faults: Faults;
  readonly #database: State = Array.from({ length: keys }, () => 0);
  /** The state that clients have seen acknowledged. */
  #acknowledged: State = [...this.#database];
  #main: { ring: RingWriter; isListening: boolean; known: State; due: number | undefined } | undefined;
  readonly #edges: Edge[] = [];
  #ends: number[] = [];
  stale = 0;
  served = 0;

  constructor(path: string, faults: Faults) {
    this.#path = path;
    this.#faults = faults;
    this.#start();
    this.#listen();
    for (let n = 0; n < edges; n++) this.#edges.push(this.#newEdge());
  }

  async run(steps: readonly Step[]): Promise<void> {
    for (const each of steps) {
      this.#take(each);
      await nextTurn();
    }
    for (let turn = 0; turn < 100; turn++) {
      for (const edge of this.#edges) edge.advance();
      await nextTurn();
    }
    for (const edge of this.#edges) edge.follower.stop();
  }

  #take(each: Step): void {
    const main = this.#main;
    if (each.do === "start" && main === undefined) this.#start();
    else if (each.do === "listen") this.#listen();
    else if (each.do === "kill") this.#main = undefined;
    else if (each.do === "change") this.#change(each);
    else if (each.do === "many") this.#many(each.dies);
    else if (each.do === "due" && main?.due !== undefined) {
      main.ring.makeDue(main.due);
      main.due = undefined;
      this.#acknowledge();
    } else if (each.do === "fill" && main !== undefined)
      for (let n = 0; n < 5; n++)
        this.#append({ do: "note", topic: "fill", value: "x".repeat(200_000) }, false);
    else if (each.do === "ask") this.#ask(this.#edges[each.edge]!);
    else if (each.do === "advance") this.#edges[each.edge]!.advance();
    else if (each.do === "restart" && main?.isListening === true) {
      this.#edges[each.edge]!.follower.stop();
      this.#edges[each.edge] = this.#newEdge();
    }
  }

  #start(): void {
    if (this.#faults.isForgetful === true) rmSync(this.#path, { force: true });
    const ring = new RingWriter(this.#path);
    this.#main = { ring, isListening: false, known: [...this.#database], due: undefined };
  }

  #listen(): void {
    const main = this.#main;
    if (main === undefined || main.isListening) return;
    main.isListening = true;
    if (main.ring.isOlder && this.#faults.isTrusting !== true) this.#append({ do: "reload" }, false);
  }

  #change({ key, dies }: Step & { do: "change" }): void {
    const main = this.#main;
    if (main === undefined) return;
    this.#database[key]!++;
    if (dies === "before" || dies === "within") {
      if (dies === "within") this.#writeHalf(main.ring.end);
      this.#main = undefined;
      return;
    }
    if (main.isListening) this.#append({ do: "change", changes: [{ kind: "zone", id: String(key) }] }, true);
    else this.#append({ do: "reload" }, true);
    if (dies === "after") this.#main = undefined;
    else this.#acknowledge();
  }

  /** Bytes of a line whose head never followed. */
  #writeHalf(end: number): void {
    const fd = openSync(this.#path, "r+");
    writeSync(fd, '{"do":"chan', 32 + (end % ringBytes));
    closeSync(fd);
  }

  /** A large change, which is carried out before it is due. */
  #many(dies: boolean): void {
    const main = this.#main;
    if (main?.isListening !== true || main.due !== undefined) return;
    for (let key = 0; key < keys; key++) this.#database[key]!++;
    const changes = this.#database.map((_, key) => ({ kind: "zone" as const, id: String(key) }));
    main.due = this.#append({ do: "change", changes }, false);
    if (dies) this.#main = undefined;
  }

  /** Main answers. Clients may have seen all that it read at its start, and their changes may depend on it. */
  #acknowledge(): void {
    const main = this.#main!;
    const isWaiting = main.due !== undefined;
    // A large change of which main has not said yet that it is due is in nobody's answer.
    this.#acknowledged = this.#acknowledged.map((value, key) =>
      Math.max(value, isWaiting ? main.known[key]! : this.#database[key]!),
    );
  }

  #append(record: RingRecord, isDue: boolean): number {
    const end = this.#main!.ring.append(messageLine(record), isDue);
    this.#ends.push(end);
    return end;
  }

  get areNumbersGrowing(): boolean {
    return this.#ends.every((end, at) => at === 0 || end > this.#ends[at - 1]!);
  }

  #newEdge(): Edge {
    return new Edge(new RingReader(this.#path), this.#main!.ring.end, this.#database);
  }

  #ask(edge: Edge): void {
    const promised = [...this.#acknowledged];
    const serve = (): void => {
      this.served++;
      if (promised.some((value, key) => edge.memory[key]! < value)) this.stale++;
    };
    if (this.#faults.isBlind === true || edge.follower.isCurrent) serve();
    else void edge.follower.becomesCurrent().then(serve);
  }
}

/** An edge process, which does one thing for each call of `advance`. */
class Edge {
  readonly memory: State;
  readonly follower: RingFollower;
  readonly #database: State;
  #gates: (() => void)[] = [];

  constructor(reader: RingReader, from: number, database: State) {
    this.#database = database;
    this.memory = [...database];
    this.follower = new RingFollower(reader, from, {
      carryOut: async (record) => {
        await this.#gate();
        if (record.do === "reload") this.#readAll();
        if (record.do !== "change") return;
        for (const { id } of record.changes) this.memory[Number(id)] = this.#database[Number(id)]!;
      },
      readAgain: async () => {
        await this.#gate();
        this.#readAll();
      },
      onFault: () => {},
    });
  }

  advance(): void {
    this.follower.look();
    this.#gates.shift()?.();
  }

  async #gate(): Promise<void> {
    await new Promise<void>((resolve) => this.#gates.push(resolve));
  }

  #readAll(): void {
    for (const [key, value] of this.#database.entries()) this.memory[key] = value;
  }
}

/** The number of stale answers. */
async function simulate(steps: readonly Step[], faults: Faults): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-test-"));
  try {
    const simulation = new Simulation(join(folder, "ring"), faults);
    await simulation.run(steps);
    if (faults.isForgetful !== true) expect(simulation.areNumbersGrowing).toBe(true);
    return simulation.stale;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const simulated = (faults: Faults = {}) =>
  fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
    expect(await simulate(steps, faults)).toBe(0);
  });

const runs = { numRuns: Number(process.env["RING_RUNS"] ?? 100) };

it("no request is answered without a change that was acknowledged before it", async () => {
  await fc.assert(simulated(), runs);
});

it.each([
  ["edge processes do not compare numbers", { isBlind: true }],
  ["a new main process begins another ring", { isForgetful: true }],
])("the simulation finds stale answers if %s", async (_, faults) => {
  const { failed } = await fc.check(simulated(faults), { ...runs, endOnFailure: true });
  expect(failed).toBe(true);
});

it("a new main process must not trust that the one before has written all that it changed", async () => {
  const steps: Step[] = [
    { do: "change", key: 0, dies: "before" },
    { do: "start" },
    { do: "listen" },
    { do: "change", key: 1, dies: "no" }, // which may depend on the first change
    { do: "ask", edge: 0 },
  ];
  expect(await simulate(steps, { isTrusting: true })).toBe(1);
  expect(await simulate(steps, {})).toBe(0);
});

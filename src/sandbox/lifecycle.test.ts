import { fc } from "../../test/helpers/properties.ts";
import { describe, expect, it } from "vitest";
import {
  initialLifecycle,
  step,
  type CellEffect,
  type LifecycleEvent,
  type Lifecycle,
  type CellRole,
  type Targets,
} from "./lifecycle.ts";

const targets: Targets = {
  shared: 2,
  spares: 1,
  dedicatedMax: 2,
  bootsMax: 2,
  drainingMax: 1,
  drainMsMin: 2000,
};

/** Simulated processes: carries out the effects, and checks that each effect is allowed. */
class FakeProcesses {
  readonly targets: Targets;
  state: Lifecycle = initialLifecycle;
  now = 0;
  /** The simulated processes with their roles. */
  readonly running = new Map<number, "booting" | "ready" | "shared" | "draining" | "dedicated">();
  /** Requests that wait for a dedicated cell. */
  waiting = 0;
  isOpen = true;
  #lastId = 0;

  constructor(of: Targets = targets) {
    this.targets = of;
    this.apply({ type: "tick", now: 0 });
  }

  apply(event: LifecycleEvent): CellEffect[] {
    const { state, effects } = step(this.state, event, this.targets);
    this.state = state;
    for (const effect of effects) this.#carryOut(effect);
    this.#check();
    return effects;
  }

  booted = (id: number): CellEffect[] => {
    this.running.set(id, "ready");
    return this.apply({ type: "booted", id, now: this.now });
  };
  bootFailed = (id: number): CellEffect[] => {
    this.running.delete(id);
    return this.apply({ type: "bootFailed", id, now: this.now });
  };
  exited = (id: number): CellEffect[] => {
    this.running.delete(id);
    return this.apply({ type: "exited", id, now: this.now });
  };
  dedicatedWanted = (): CellEffect[] => {
    if (this.isOpen) this.waiting++;
    return this.apply({ type: "dedicatedWanted", now: this.now });
  };
  dedicatedUnwanted = (): CellEffect[] => {
    this.waiting = Math.max(0, this.waiting - 1);
    return this.apply({ type: "dedicatedUnwanted", now: this.now });
  };
  worn = (id: number): CellEffect[] => this.apply({ type: "worn", id, now: this.now });
  retire = (id: number): CellEffect[] => this.apply({ type: "retire", id, now: this.now });
  close = (): CellEffect[] => {
    this.isOpen = false;
    this.waiting = 0;
    return this.apply({ type: "close", now: this.now });
  };
  tick = (elapsedMs: number): CellEffect[] => {
    this.now += elapsedMs;
    return this.apply({ type: "tick", now: this.now });
  };

  ids(...of: string[]): number[] {
    return [...this.running].filter(([, each]) => of.includes(each)).map(([id]) => id);
  }

  roles(): CellRole[] {
    return [...this.state.cells.values()].toSorted();
  }

  /** Lets every boot succeed, until there is nothing more to do. */
  settle(): void {
    for (let i = 0; i < 1000; i++) {
      const [id] = this.ids("booting");
      if (id !== undefined) this.booted(id);
      else if (this.tick(60_000).length === 0) return;
    }
    throw new Error("the pool starts cells without end");
  }

  #carryOut(effect: CellEffect): void {
    const role = this.running.get(effect.id);
    switch (effect.do) {
      case "boot":
        expect(this.isOpen).toBe(true);
        expect(this.now).toBeGreaterThanOrEqual(this.state.bootAfter);
        expect(effect.id).toBeGreaterThan(this.#lastId);
        // After a failure only one cell boots at a time.
        if (this.state.failures > 0) expect(this.ids("booting")).toEqual([]);
        this.#lastId = effect.id;
        this.running.set(effect.id, "booting");
        break;
      case "share":
        expect(role).toBe("ready");
        this.running.set(effect.id, "shared");
        break;
      case "giveDedicated":
        expect(role).toBe("ready");
        expect(this.waiting).toBeGreaterThan(0);
        this.waiting--;
        this.running.set(effect.id, "dedicated");
        break;
      case "drain":
        expect(role).toBe("shared");
        this.running.set(effect.id, "draining");
        break;
      case "end":
        expect(role).toBeDefined();
        this.running.delete(effect.id);
        break;
    }
  }

  #check(): void {
    const { shared, spares, dedicatedMax, bootsMax, drainingMax } = this.targets;
    expect(this.ids("draining").length).toBeLessThanOrEqual(drainingMax);
    expect(this.ids("booting").length).toBeLessThanOrEqual(bootsMax);
    expect(this.ids("shared").length).toBeLessThanOrEqual(shared);
    expect(this.ids("dedicated").length).toBeLessThanOrEqual(dedicatedMax);
    // Worn cells are replaced while they serve.
    const own = this.running.size - this.ids("draining").length;
    const worn = this.roles().filter((role) => role === "worn").length;
    expect(own).toBeLessThanOrEqual(shared + spares + dedicatedMax + worn);
    expect(new Set(this.running.keys())).toEqual(new Set(this.state.cells.keys()));
    expect(this.state.waiting).toBe(this.waiting);
  }
}

describe("cells", () => {
  it("serve after booting, with one spare", () => {
    const cells = new FakeProcesses();
    expect(cells.roles()).toEqual(["booting", "booting"]);
    expect(cells.booted(2)).toEqual([
      { do: "share", id: 2 },
      { do: "boot", id: 3 },
    ]);
    expect(cells.booted(1)).toEqual([{ do: "share", id: 1 }]);
    expect(cells.booted(3)).toEqual([]);
    expect(cells.roles()).toEqual(["shared", "shared", "spare"]);
  });

  it("are replaced by the spare at once, and the spare by a new one", () => {
    const cells = new FakeProcesses();
    cells.settle();
    expect(cells.exited(1)).toEqual([
      { do: "share", id: 3 },
      { do: "boot", id: 4 },
    ]);
  });

  it("are replaced when worn, and finish their runs", () => {
    const cells = new FakeProcesses();
    cells.settle();
    expect(cells.worn(1)).toEqual([
      { do: "share", id: 3 },
      { do: "drain", id: 1 },
      { do: "boot", id: 4 },
    ]);
    expect(cells.retire(1)).toEqual([{ do: "end", id: 1 }]);
    // Without a spare the worn cell goes on serving until there is one.
    expect(cells.worn(2)).toEqual([{ do: "boot", id: 5 }]);
    expect(cells.ids("shared")).toEqual([2, 3]);
    expect(cells.booted(4)).toEqual([
      { do: "share", id: 4 },
      { do: "drain", id: 2 },
    ]);
    cells.settle();
    expect(cells.roles()).toEqual(["draining", "shared", "shared", "spare"]);
  });

  it("drain one after another: a worn cell waits until the draining one has had its minimum time", () => {
    const cells = new FakeProcesses();
    cells.settle();
    cells.worn(1);
    cells.booted(4);
    // The next worn cell is not replaced yet, although there is a spare.
    expect(cells.worn(2)).toEqual([{ do: "boot", id: 5 }]);
    cells.booted(5);
    expect(cells.tick(targets.drainMsMin - 1)).toEqual([]);
    expect(cells.ids("shared")).toEqual([2, 3]);
    expect(cells.tick(1)).toEqual([
      { do: "end", id: 1 },
      { do: "share", id: 4 },
      { do: "drain", id: 2 },
    ]);
    expect(cells.ids("draining")).toEqual([2]);
    // A cell that dies is replaced all the same.
    cells.worn(3);
    expect(cells.exited(4)).toContainEqual({ do: "share", id: 5 });
  });

  it("are dedicated to quarantined owners, up to a maximum", () => {
    const cells = new FakeProcesses();
    cells.settle();
    expect(cells.dedicatedWanted()).toEqual([
      { do: "giveDedicated", id: 3 },
      { do: "boot", id: 4 },
    ]);
    cells.dedicatedWanted();
    cells.dedicatedWanted();
    cells.settle();
    expect(cells.ids("dedicated")).toHaveLength(2);
    expect(cells.waiting).toBe(1);
    const [dedicated] = cells.ids("dedicated");
    expect(cells.retire(dedicated!)).toContainEqual({ do: "end", id: dedicated });
    cells.settle();
    expect([cells.ids("dedicated").length, cells.waiting]).toEqual([2, 0]);
  });

  it("are shared before they are dedicated", () => {
    const cells = new FakeProcesses();
    cells.dedicatedWanted();
    expect(cells.booted(1)).toEqual([
      { do: "share", id: 1 },
      { do: "boot", id: 3 },
    ]);
    expect(cells.booted(2)).toEqual([
      { do: "share", id: 2 },
      { do: "boot", id: 4 },
    ]);
    expect(cells.booted(3)).toContainEqual({ do: "giveDedicated", id: 3 });
  });

  it("that fail to start are retried one at a time with backoff", () => {
    const cells = new FakeProcesses({ ...targets, shared: 1, spares: 0 });
    const delays: number[] = [];
    for (let i = 0; i < 12; i++) {
      const [id] = cells.ids("booting");
      const failedAt = cells.now;
      cells.bootFailed(id!);
      while (cells.ids("booting").length === 0) cells.tick(10);
      delays.push(cells.now - failedAt);
      expect(cells.ids("booting")).toHaveLength(1);
    }
    expect(delays.slice(0, 5)).toEqual([100, 200, 400, 800, 1600]);
    expect(delays.at(-1)).toBe(30_000);
    cells.settle();
    expect(cells.state).toMatchObject({ failures: 0, bootAfter: 0 });
  });

  it("end on close, also those that boot, and none starts afterwards", () => {
    const cells = new FakeProcesses();
    cells.booted(1);
    cells.dedicatedWanted();
    expect(cells.close().map((effect) => effect.do)).toEqual(["end", "end", "end"]);
    expect(cells.running.size).toBe(0);
    expect(cells.dedicatedWanted()).toEqual([]);
    expect(cells.tick(100_000)).toEqual([]);
  });

  const action = fc.oneof(
    fc.record({
      what: fc.constantFrom("booted", "booted", "bootFailed", "exited", "worn", "retire"),
      pick: fc.nat(50),
    }),
    fc.record({ what: fc.constantFrom("dedicatedWanted", "dedicatedUnwanted"), pick: fc.constant(0) }),
    fc.record({ what: fc.constant("tick"), pick: fc.nat(500) }),
  );
  const mayHappenTo: Record<string, string[]> = {
    booted: ["booting"],
    bootFailed: ["booting"],
    exited: ["ready", "shared", "draining", "dedicated"],
    worn: ["shared"],
    retire: ["draining", "dedicated"],
  };
  const anyTargets = fc.record({
    shared: fc.integer({ min: 1, max: 4 }),
    spares: fc.nat(3),
    dedicatedMax: fc.integer({ min: 1, max: 4 }),
    bootsMax: fc.integer({ min: 1, max: 4 }),
    drainingMax: fc.integer({ min: 1, max: 3 }),
    drainMsMin: fc.nat(1000),
  });

  it("in any sequence of events there are never too many cells, none is used twice, and the pool recovers", () => {
    fc.assert(
      fc.property(anyTargets, fc.array(action, { maxLength: 80 }), fc.boolean(), (of, actions, closes) => {
        const cells = new FakeProcesses(of);
        for (const { what, pick } of actions) {
          const candidates = cells.ids(...(mayHappenTo[what] ?? []));
          const id = candidates[pick % Math.max(1, candidates.length)];
          if (what === "tick") cells.tick(pick);
          else if (what === "dedicatedWanted") cells.dedicatedWanted();
          else if (what === "dedicatedUnwanted") cells.dedicatedUnwanted();
          else if (id !== undefined) cells[what](id);
        }
        if (closes) {
          cells.close();
          expect(cells.running.size).toBe(0);
          return;
        }
        cells.settle();
        expect(cells.ids("shared")).toHaveLength(of.shared);
        expect(cells.waiting === 0 || cells.ids("dedicated").length === of.dedicatedMax).toBe(true);
        expect(cells.ids("ready").length).toBeGreaterThanOrEqual(of.spares);
      }),
      { numRuns: 1000 },
    );
  });

  it("is deterministic, and does not modify its arguments", () => {
    const before = { ...initialLifecycle, cells: new Map<number, CellRole>([[1, "spare"]]), nextId: 2 };
    const copy = structuredClone(before);
    const event: LifecycleEvent = { type: "dedicatedWanted", now: 5 };
    expect(step(before, event, targets)).toEqual(step(before, event, targets));
    expect(before).toEqual(copy);
  });
});

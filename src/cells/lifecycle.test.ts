import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  initialLifecycle,
  step,
  type Effect,
  type Happening,
  type Lifecycle,
  type Role,
  type Targets,
} from "./lifecycle.ts";

const targets: Targets = { shared: 2, spares: 1, soloMax: 2, bootsMax: 2 };

/** Processes that exist in name only: it does what the effects say, and checks that they may be said. */
class FakeProcesses {
  readonly targets: Targets;
  state: Lifecycle = initialLifecycle;
  now = 0;
  /** Those that run, by what they were told to be. */
  readonly running = new Map<number, "booting" | "ready" | "shared" | "draining" | "solo">();
  /** Suspects without a cell. */
  waiting = 0;
  isOpen = true;
  #lastId = 0;

  constructor(of: Targets = targets) {
    this.targets = of;
    this.tell({ type: "tick", now: 0 });
  }

  tell(happening: Happening): Effect[] {
    const { state, effects } = step(this.state, happening, this.targets);
    this.state = state;
    for (const effect of effects) this.#carryOut(effect);
    this.#check();
    return effects;
  }

  booted = (id: number): Effect[] => {
    this.running.set(id, "ready");
    return this.tell({ type: "booted", id, now: this.now });
  };
  bootFailed = (id: number): Effect[] => {
    this.running.delete(id);
    return this.tell({ type: "bootFailed", id, now: this.now });
  };
  exited = (id: number): Effect[] => {
    this.running.delete(id);
    return this.tell({ type: "exited", id, now: this.now });
  };
  soloWanted = (): Effect[] => {
    if (this.isOpen) this.waiting++;
    return this.tell({ type: "soloWanted", now: this.now });
  };
  soloUnwanted = (): Effect[] => {
    this.waiting = Math.max(0, this.waiting - 1);
    return this.tell({ type: "soloUnwanted", now: this.now });
  };
  worn = (id: number): Effect[] => this.tell({ type: "worn", id, now: this.now });
  retire = (id: number): Effect[] => this.tell({ type: "retire", id, now: this.now });
  close = (): Effect[] => {
    this.isOpen = false;
    this.waiting = 0;
    return this.tell({ type: "close", now: this.now });
  };
  tick = (elapsedMs: number): Effect[] => {
    this.now += elapsedMs;
    return this.tell({ type: "tick", now: this.now });
  };

  ids(...of: string[]): number[] {
    return [...this.running].filter(([, each]) => of.includes(each)).map(([id]) => id);
  }

  roles(): Role[] {
    return [...this.state.cells.values()].toSorted();
  }

  /** Every boot succeeds and nothing else happens, until there is nothing more to do. */
  settle(): void {
    for (let i = 0; i < 1000; i++) {
      const [id] = this.ids("booting");
      if (id !== undefined) this.booted(id);
      else if (this.tick(60_000).length === 0) return;
    }
    throw new Error("it boots for ever");
  }

  #carryOut(effect: Effect): void {
    const role = this.running.get(effect.id);
    switch (effect.do) {
      case "boot":
        expect(this.isOpen).toBe(true);
        expect(this.now).toBeGreaterThanOrEqual(this.state.bootAfter);
        expect(effect.id).toBeGreaterThan(this.#lastId);
        // After a failure one at a time.
        if (this.state.failures > 0) expect(this.ids("booting")).toEqual([]);
        this.#lastId = effect.id;
        this.running.set(effect.id, "booting");
        break;
      case "share":
        expect(role).toBe("ready");
        this.running.set(effect.id, "shared");
        break;
      case "giveSolo":
        expect(role).toBe("ready");
        expect(this.waiting).toBeGreaterThan(0);
        this.waiting--;
        this.running.set(effect.id, "solo");
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
    const { shared, spares, soloMax, bootsMax } = this.targets;
    expect(this.ids("booting").length).toBeLessThanOrEqual(bootsMax);
    expect(this.ids("shared").length).toBeLessThanOrEqual(shared);
    expect(this.ids("solo").length).toBeLessThanOrEqual(soloMax);
    // Worn ones are replaced while they serve.
    const own = this.running.size - this.ids("draining").length;
    const worn = this.roles().filter((role) => role === "worn").length;
    expect(own).toBeLessThanOrEqual(shared + spares + soloMax + worn);
    expect(new Set(this.running.keys())).toEqual(new Set(this.state.cells.keys()));
    expect(this.state.waiting).toBe(this.waiting);
  }
}

describe("cells", () => {
  it("serve once they have booted, and a spare waits", () => {
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

  it("are replaced when they are worn, and finish what they have begun", () => {
    const cells = new FakeProcesses();
    cells.settle();
    expect(cells.worn(1)).toEqual([
      { do: "share", id: 3 },
      { do: "drain", id: 1 },
      { do: "boot", id: 4 },
    ]);
    expect(cells.retire(1)).toEqual([{ do: "end", id: 1 }]);
    // Without a spare it goes on until there is one.
    expect(cells.worn(2)).toEqual([{ do: "boot", id: 5 }]);
    expect(cells.ids("shared")).toEqual([2, 3]);
    expect(cells.booted(4)).toEqual([
      { do: "share", id: 4 },
      { do: "drain", id: 2 },
    ]);
    cells.settle();
    expect(cells.roles()).toEqual(["draining", "shared", "shared", "spare"]);
  });

  it("are given to suspects, of whom no more than so many run at once", () => {
    const cells = new FakeProcesses();
    cells.settle();
    expect(cells.soloWanted()).toEqual([
      { do: "giveSolo", id: 3 },
      { do: "boot", id: 4 },
    ]);
    cells.soloWanted();
    cells.soloWanted();
    cells.settle();
    expect(cells.ids("solo")).toHaveLength(2);
    expect(cells.waiting).toBe(1);
    const [solo] = cells.ids("solo");
    expect(cells.retire(solo!)).toContainEqual({ do: "end", id: solo });
    cells.settle();
    expect([cells.ids("solo").length, cells.waiting]).toEqual([2, 0]);
  });

  it("serve everyone before they serve a suspect", () => {
    const cells = new FakeProcesses();
    cells.soloWanted();
    expect(cells.booted(1)).toEqual([
      { do: "share", id: 1 },
      { do: "boot", id: 3 },
    ]);
    expect(cells.booted(2)).toEqual([
      { do: "share", id: 2 },
      { do: "boot", id: 4 },
    ]);
    expect(cells.booted(3)).toContainEqual({ do: "giveSolo", id: 3 });
  });

  it("that do not start are tried again one by one, each time later", () => {
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

  it("end when it is closed, those that boot too, and none starts after", () => {
    const cells = new FakeProcesses();
    cells.booted(1);
    cells.soloWanted();
    expect(cells.close().map((effect) => effect.do)).toEqual(["end", "end", "end"]);
    expect(cells.running.size).toBe(0);
    expect(cells.soloWanted()).toEqual([]);
    expect(cells.tick(100_000)).toEqual([]);
  });

  const action = fc.oneof(
    fc.record({
      what: fc.constantFrom("booted", "booted", "bootFailed", "exited", "worn", "retire"),
      pick: fc.nat(50),
    }),
    fc.record({ what: fc.constantFrom("soloWanted", "soloUnwanted"), pick: fc.constant(0) }),
    fc.record({ what: fc.constant("tick"), pick: fc.nat(500) }),
  );
  const mayHappenTo: Record<string, string[]> = {
    booted: ["booting"],
    bootFailed: ["booting"],
    exited: ["ready", "shared", "draining", "solo"],
    worn: ["shared"],
    retire: ["draining", "solo"],
  };
  const anyTargets = fc.record({
    shared: fc.integer({ min: 1, max: 4 }),
    spares: fc.nat(3),
    soloMax: fc.integer({ min: 1, max: 4 }),
    bootsMax: fc.integer({ min: 1, max: 4 }),
  });

  it("whatever happens: never too many, none used twice, and all is well again afterwards", () => {
    fc.assert(
      fc.property(anyTargets, fc.array(action, { maxLength: 80 }), fc.boolean(), (of, actions, closes) => {
        const cells = new FakeProcesses(of);
        for (const { what, pick } of actions) {
          const candidates = cells.ids(...(mayHappenTo[what] ?? []));
          const id = candidates[pick % Math.max(1, candidates.length)];
          if (what === "tick") cells.tick(pick);
          else if (what === "soloWanted") cells.soloWanted();
          else if (what === "soloUnwanted") cells.soloUnwanted();
          else if (id !== undefined) cells[what](id);
        }
        if (closes) {
          cells.close();
          expect(cells.running.size).toBe(0);
          return;
        }
        cells.settle();
        expect(cells.ids("shared")).toHaveLength(of.shared);
        expect(cells.waiting === 0 || cells.ids("solo").length === of.soloMax).toBe(true);
        expect(cells.ids("ready").length).toBeGreaterThanOrEqual(of.spares);
      }),
      { numRuns: 1000 },
    );
  });

  it("says the same to the same, and changes nothing that it was given", () => {
    const before = { ...initialLifecycle, cells: new Map<number, Role>([[1, "spare"]]), nextId: 2 };
    const copy = structuredClone(before);
    const happening: Happening = { type: "soloWanted", now: 5 };
    expect(step(before, happening, targets)).toEqual(step(before, happening, targets));
    expect(before).toEqual(copy);
  });
});

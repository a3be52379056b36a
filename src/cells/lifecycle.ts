/**
 * What becomes of cells, as a pure function: no process, no clock. A cell boots, waits as a spare, then serves many scripts
 * (shared) or one suspect (solo), and ends. One that has grown too large (worn) serves until another takes its place, and then
 * finishes what it has begun (draining). `step` takes what happened and says what to do.
 */
export type Role = "booting" | "spare" | "shared" | "worn" | "draining" | "solo";

export interface Lifecycle {
  /** By id, in the order of boot. */
  cells: ReadonlyMap<number, Role>;
  /** Suspects that wait for a solo cell. */
  waiting: number;
  /** Boots that failed in a row. */
  failures: number;
  /** When the next boot may be tried, in the caller's milliseconds. */
  bootAfter: number;
  isOpen: boolean;
  nextId: number;
}

export type Happening =
  | { type: "tick"; now: number }
  | { type: "booted"; id: number; now: number }
  /** Before it was ready. */
  | { type: "bootFailed"; id: number; now: number }
  | { type: "exited"; id: number; now: number }
  | { type: "soloWanted"; now: number }
  /** Whoever waited for a solo cell does so no longer. */
  | { type: "soloUnwanted"; now: number }
  /** A shared cell is to be replaced. */
  | { type: "worn"; id: number; now: number }
  /** A cell has no more use. */
  | { type: "retire"; id: number; now: number }
  | { type: "close"; now: number };

export type Effect =
  | { do: "boot"; id: number }
  | { do: "share"; id: number }
  | { do: "giveSolo"; id: number }
  /** Gets no more requests. */
  | { do: "drain"; id: number }
  | { do: "end"; id: number };

export interface Targets {
  shared: number;
  spares: number;
  soloMax: number;
  /** Cells that boot at a time: more would only take the processor from each other, and from those that serve. */
  bootsMax: number;
}

const backoffMs = 100;
const backoffMaxMs = 30_000;

export const initialLifecycle: Lifecycle = {
  cells: new Map(),
  waiting: 0,
  failures: 0,
  bootAfter: 0,
  isOpen: true,
  nextId: 1,
};

export function step(
  state: Lifecycle,
  happening: Happening,
  targets: Targets,
): { state: Lifecycle; effects: Effect[] } {
  const next = { ...state, cells: new Map(state.cells) };
  const effects: Effect[] = [];
  switch (happening.type) {
    case "tick":
      break;
    case "booted":
      if (next.cells.has(happening.id)) next.cells.set(happening.id, "spare");
      next.failures = 0;
      next.bootAfter = 0;
      break;
    case "bootFailed":
      if (!next.cells.delete(happening.id)) break;
      next.failures++;
      next.bootAfter = happening.now + Math.min(backoffMs * 2 ** (next.failures - 1), backoffMaxMs);
      break;
    case "exited":
      next.cells.delete(happening.id);
      break;
    case "soloWanted":
      if (next.isOpen) next.waiting++;
      break;
    case "soloUnwanted":
      next.waiting = Math.max(0, next.waiting - 1);
      break;
    case "worn":
      if (next.cells.get(happening.id) === "shared") next.cells.set(happening.id, "worn");
      break;
    case "retire":
      if (next.cells.delete(happening.id)) effects.push({ do: "end", id: happening.id });
      break;
    case "close":
      next.isOpen = false;
      next.waiting = 0;
      for (const id of next.cells.keys()) effects.push({ do: "end", id });
      next.cells.clear();
      break;
  }
  if (next.isOpen) settle(next, happening.now, targets, effects);
  return { state: next, effects };
}

const count = (state: Lifecycle, role: Role): number =>
  [...state.cells.values()].filter((each) => each === role).length;

function settle(
  state: Lifecycle & { cells: Map<number, Role> },
  now: number,
  targets: Targets,
  effects: Effect[],
): void {
  // Those who share come first: without a shared cell nobody is served.
  for (const [id, role] of state.cells) {
    if (role !== "spare") continue;
    if (count(state, "shared") < targets.shared) {
      state.cells.set(id, "shared");
      effects.push({ do: "share", id });
    } else if (state.waiting > 0 && count(state, "solo") < targets.soloMax) {
      state.cells.set(id, "solo");
      state.waiting--;
      effects.push({ do: "giveSolo", id });
    }
  }
  for (const [id, role] of state.cells) {
    if (role !== "worn" || count(state, "shared") + count(state, "worn") <= targets.shared) continue;
    state.cells.set(id, "draining");
    effects.push({ do: "drain", id });
  }
  if (now < state.bootAfter) return;
  const booting = count(state, "booting");
  const soloRoom = Math.min(state.waiting, targets.soloMax - count(state, "solo"));
  const missing =
    targets.shared - count(state, "shared") + soloRoom + targets.spares - count(state, "spare") - booting;
  // After a failure one at a time: the cause is likely to be the same for all.
  const boots = Math.min(missing, (state.failures > 0 ? 1 : targets.bootsMax) - booting);
  for (let i = 0; i < boots; i++) {
    const id = state.nextId++;
    state.cells.set(id, "booting");
    effects.push({ do: "boot", id });
  }
}

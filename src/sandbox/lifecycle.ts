/**
 * The lifecycle of cells as a pure function, without processes and without a clock. A cell boots, waits as a
 * spare, then serves many scripts (shared) or one quarantined owner (dedicated), and ends. A cell that has
 * grown too large (worn) serves until another one replaces it, and then finishes its runs (draining). Few
 * cells drain at a time, because their memory comes on top of the others'; a worn cell keeps serving until
 * the oldest draining one has had its time and is ended.
 *
 * `step` takes an event and returns the next state with the effects to carry out.
 */
export type CellRole = "booting" | "spare" | "shared" | "worn" | "draining" | "dedicated";

export interface Lifecycle {
  /** By id, in the order of boot. */
  cells: ReadonlyMap<number, CellRole>;
  /** When each draining cell began to drain, by id, the oldest first. */
  draining: ReadonlyMap<number, number>;
  /** Number of requests that wait for a dedicated cell. */
  waiting: number;
  /** Consecutive boots that failed. */
  failures: number;
  /** Earliest time of the next boot, in milliseconds of the caller's clock. */
  bootAfter: number;
  isOpen: boolean;
  nextId: number;
}

export type LifecycleEvent =
  | { type: "tick"; now: number }
  | { type: "booted"; id: number; now: number }
  /** The process ended, or did not answer, before it was ready. */
  | { type: "bootFailed"; id: number; now: number }
  | { type: "exited"; id: number; now: number }
  | { type: "dedicatedWanted"; now: number }
  /** A request no longer waits for a dedicated cell. */
  | { type: "dedicatedUnwanted"; now: number }
  /** A shared cell must be replaced. */
  | { type: "worn"; id: number; now: number }
  /** A cell is no longer needed. */
  | { type: "retire"; id: number; now: number }
  | { type: "close"; now: number };

export type CellEffect =
  | { do: "boot"; id: number }
  | { do: "share"; id: number }
  | { do: "giveDedicated"; id: number }
  /** The cell gets no new requests. */
  | { do: "drain"; id: number }
  | { do: "end"; id: number };

export interface Targets {
  shared: number;
  spares: number;
  dedicatedMax: number;
  /** Cells that boot at the same time: more would only slow each other, and the cells that serve. */
  bootsMax: number;
  /** Cells that drain at the same time. */
  drainingMax: number;
  /** Minimum time to drain before a cell is ended for the next one. */
  drainMsMin: number;
}

const backoffMs = 100;
const backoffMaxMs = 30_000;

export const initialLifecycle: Lifecycle = {
  cells: new Map(),
  draining: new Map(),
  waiting: 0,
  failures: 0,
  bootAfter: 0,
  isOpen: true,
  nextId: 1,
};

export function step(
  state: Lifecycle,
  event: LifecycleEvent,
  targets: Targets,
): { state: Lifecycle; effects: CellEffect[] } {
  const next = { ...state, cells: new Map(state.cells), draining: new Map(state.draining) };
  const effects: CellEffect[] = [];
  switch (event.type) {
    case "tick":
      break;
    case "booted":
      if (next.cells.has(event.id)) next.cells.set(event.id, "spare");
      next.failures = 0;
      next.bootAfter = 0;
      break;
    case "bootFailed":
      if (!next.cells.delete(event.id)) break;
      next.failures++;
      next.bootAfter = event.now + Math.min(backoffMs * 2 ** (next.failures - 1), backoffMaxMs);
      break;
    case "exited":
      next.cells.delete(event.id);
      break;
    case "dedicatedWanted":
      if (next.isOpen) next.waiting++;
      break;
    case "dedicatedUnwanted":
      next.waiting = Math.max(0, next.waiting - 1);
      break;
    case "worn":
      if (next.cells.get(event.id) === "shared") next.cells.set(event.id, "worn");
      break;
    case "retire":
      if (next.cells.delete(event.id)) effects.push({ do: "end", id: event.id });
      break;
    case "close":
      next.isOpen = false;
      next.waiting = 0;
      for (const id of next.cells.keys()) effects.push({ do: "end", id });
      next.cells.clear();
      break;
  }
  for (const id of next.draining.keys()) if (!next.cells.has(id)) next.draining.delete(id);
  if (next.isOpen) settle(next, event.now, targets, effects);
  return { state: next, effects };
}

const count = (state: Lifecycle, role: CellRole): number =>
  [...state.cells.values()].filter((each) => each === role).length;

/** Whether a worn cell waits until a draining one has had its time. */
export const isWornWaiting = ({ cells, draining }: Lifecycle): boolean =>
  draining.size > 0 && [...cells.values()].includes("worn");

type Next = Lifecycle & { cells: Map<number, CellRole>; draining: Map<number, number> };

function settle(state: Next, now: number, targets: Targets, effects: CellEffect[]): void {
  // Shared cells come first: every request needs one.
  for (const [id, role] of state.cells) {
    if (role !== "spare") continue;
    const isShort = count(state, "shared") + count(state, "worn") < targets.shared;
    if (isShort || (count(state, "shared") < targets.shared && mayDrain(state, now, targets, effects))) {
      state.cells.set(id, "shared");
      effects.push({ do: "share", id });
    } else if (state.waiting > 0 && count(state, "dedicated") < targets.dedicatedMax) {
      state.cells.set(id, "dedicated");
      state.waiting--;
      effects.push({ do: "giveDedicated", id });
    }
  }
  for (const [id, role] of state.cells) {
    if (role !== "worn" || count(state, "shared") + count(state, "worn") <= targets.shared) continue;
    state.cells.set(id, "draining");
    state.draining.set(id, now);
    effects.push({ do: "drain", id });
  }
  if (now < state.bootAfter) return;
  const booting = count(state, "booting");
  const dedicatedRoom = Math.min(state.waiting, targets.dedicatedMax - count(state, "dedicated"));
  const missing =
    targets.shared -
    count(state, "shared") +
    dedicatedRoom +
    targets.spares -
    count(state, "spare") -
    booting;
  // After a failure boot one cell at a time: the cause is likely the same for all.
  const boots = Math.min(missing, (state.failures > 0 ? 1 : targets.bootsMax) - booting);
  for (let i = 0; i < boots; i++) {
    const id = state.nextId++;
    state.cells.set(id, "booting");
    effects.push({ do: "boot", id });
  }
}

/** Whether one more cell may drain. Ends the oldest draining cell if it has had its minimum time. */
function mayDrain(
  state: Next,
  now: number,
  { drainingMax, drainMsMin }: Targets,
  effects: CellEffect[],
): boolean {
  if (state.draining.size < drainingMax) return true;
  const [id, since] = state.draining.entries().next().value!;
  if (now - since < drainMsMin) return false;
  state.draining.delete(id);
  state.cells.delete(id);
  effects.push({ do: "end", id });
  return true;
}

import type { Cell, RunOptions } from "../cell.ts";
import { SharedWatch } from "../limits/watch.ts";
import type { FaultKind } from "../errors.ts";
import type { CellSettings } from "../settings.ts";

/** workerd ends an instance without requests after this time. */
const evictedAfterMs = 10_000;
/** V8 walks over all entries that were deleted lately to find the oldest one, so not each call looks for it. */
const sweepEveryMs = 1000;
/** Time after the last run of a script for which its cell is not idle, for work that the script left running. */
const scriptLingerMs = 2000;

/** A running cell of objects. */
export class OpenCell {
  readonly slot: number;
  /** Only objects of this group share the cell. */
  readonly group: string;
  readonly cell: Cell;
  /** The namespaces whose objects run here, and ids that new namespaces may get. */
  readonly namespaces: Set<string>;
  readonly spares: string[];
  /** Whether the cell has a single namespace, because that namespace has exceeded a limit before. */
  readonly isAlone: boolean;
  /** When a call was last sent here: the cell may not know of it yet. */
  #usedAt = performance.now();
  /** When a script last ran here, beside its objects. */
  #scriptAt = -Infinity;
  /** When objects were last called; the least recently called object is first. */
  readonly #objects = new Map<string, number>();
  /** When entries of evicted objects were last removed. */
  #sweptAt = performance.now();
  readonly #watch: SharedWatch;
  readonly #settings: CellSettings;

  constructor(
    assignment: { slot: number; group: string; isAlone: boolean },
    cell: Cell,
    namespaces: readonly string[],
    spares: readonly string[],
    settings: CellSettings,
  ) {
    this.slot = assignment.slot;
    this.group = assignment.group;
    this.isAlone = assignment.isAlone;
    this.cell = cell;
    this.namespaces = new Set(namespaces);
    this.spares = [...spares];
    this.#settings = settings;
    this.#watch = new SharedWatch(cell, performance.now());
  }

  check(now: number): FaultKind | undefined {
    const fault = this.#watch.check(now, this.#settings);
    return fault ?? (this.#watch.rssBytes > this.#settings.cellBytesMax ? "memory" : undefined);
  }

  /** Records a call of an object of the cell. */
  use(object: string): void {
    const now = performance.now();
    this.#usedAt = now;
    const before = this.#objects.get(object) ?? -Infinity;
    if (now - before > evictedAfterMs) this.cell.objectStarts++;
    // Moves the object to the end of the map.
    this.#objects.delete(object);
    this.#objects.set(object, now);
    if (now - this.#sweptAt > sweepEveryMs) this.#sweep(now);
  }

  #sweep(now: number): void {
    this.#sweptAt = now;
    for (const [oldest, usedAt] of this.#objects) {
      if (now - usedAt <= evictedAfterMs) break;
      this.#objects.delete(oldest);
    }
  }

  /** Records a WebSocket message for an object, which wakes a sleeping object. */
  receive(object: string): void {
    this.use(object);
    this.cell.objectMessages++;
  }

  /** Records a run of a script that calls objects of the cell. */
  noteScript(): void {
    this.#scriptAt = performance.now();
  }

  /** The time of the last call or of the cell's last sign of life, whichever is later. */
  get lastUsedAt(): number {
    return Math.max(this.#usedAt, this.cell.lastActivityAt);
  }

  isIdle(now: number, idleMs: number): boolean {
    const isLingering = now - this.#scriptAt < scriptLingerMs;
    return this.cell.runs.size === 0 && !isLingering && now - this.lastUsedAt > idleMs;
  }
}

/** The answer of an object of a cell: messages that arrive on its WebSocket count as uses of the object. */
export const usedAnswer = (
  open: OpenCell,
  object: string,
  answer: RunOptions["answer"],
): RunOptions["answer"] => ("socket" in answer ? { ...answer, onData: () => open.receive(object) } : answer);

/** An id that a running cell of a group has for a new namespace, which it gets. */
export function takeSpare(
  cells: Iterable<OpenCell>,
  group: string,
  isAllowed: (id: string) => boolean,
): { id: string; open: OpenCell } | undefined {
  for (const open of cells) {
    const at = open.group === group && !open.isAlone ? open.spares.findLastIndex(isAllowed) : -1;
    if (at < 0) continue;
    const [id] = open.spares.splice(at, 1);
    open.namespaces.add(id!);
    return { id: id!, open };
  }
  return undefined;
}

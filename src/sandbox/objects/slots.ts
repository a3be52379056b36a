import { unawaited } from "../../platform/util/uncaught.ts";
import type { CellSettings } from "../settings.ts";
import { overloadedCells, queuedTooLong, tooManyQueued } from "./faults.ts";

/** The owner of a cell. Cells of the platform run no code of the account, such as those of its databases. */
export interface SlotOwner {
  accountId: string;
  isPlatform: boolean;
}

/** A slot in use. `gone` is set while its cell ends and the slot has no next owner. */
interface HeldSlot {
  slot: number;
  owner: SlotOwner;
  gone: Promise<void> | undefined;
}

interface Waiter {
  owner: SlotOwner;
  give: (slot: Promise<number>) => void;
  refuse: (error: Error) => void;
}

/** The properties of cells that slots use. */
export interface SlotCells {
  /** Since when the cell of a slot is idle; undefined if it is not. */
  idleSince(slot: number): number | undefined;
  /** Whether the slot has a cell that has started. */
  isOpen(slot: number): boolean;
  /** Ends the cell of a slot, which calls `ending`. */
  end(slot: number): void;
}

const keyOf = ({ accountId, isPlatform }: SlotOwner): string => `${accountId} ${isPlatform}`;

type Limits = Pick<CellSettings, "objectCellsMax" | "objectAccountShare" | "objectWaitMs" | "patienceMs">;

/** Maximum number of cells of an account that wait for a slot, counted separately for scripts and for the platform. */
const waitersMax = 100;

/**
 * The slots of cells of objects. An account has a share of them, so that it cannot take those of others, and the last
 * one of its share is for the platform's cells, so that its objects cannot take its databases away.
 */
export class Slots {
  readonly #count: number;
  readonly #accountMax: number;
  readonly #scriptsMax: number;
  readonly #waitMs: number;
  readonly #patienceMs: number;
  readonly #cells: SlotCells;
  readonly #held = new Map<number, HeldSlot>();
  /** Oldest first. */
  readonly #waiters = new Set<Waiter>();
  #isClosed = false;

  constructor(limits: Limits, cells: SlotCells) {
    const { objectCellsMax, objectAccountShare } = limits;
    this.#count = objectCellsMax;
    this.#accountMax = Math.min(objectCellsMax, Math.max(2, Math.floor(objectCellsMax * objectAccountShare)));
    this.#scriptsMax = Math.max(1, this.#accountMax - 1);
    this.#waitMs = limits.objectWaitMs;
    this.#patienceMs = limits.patienceMs;
    this.#cells = cells;
  }

  /**
   * Resolves with a slot whose previous process has ended. If no slot is free, ends an idle cell; an account that has its
   * whole share can only replace its own cells. Rejects with an ObjectRefusal if no slot becomes free in time.
   */
  async claim(owner: SlotOwner): Promise<number> {
    if (this.#isClosed) throw overloadedCells();
    const key = keyOf(owner);
    if ([...this.#waiters].filter((each) => keyOf(each.owner) === key).length >= waitersMax)
      throw tooManyQueued();
    let waiter: Waiter | undefined;
    let timer: NodeJS.Timeout | undefined;
    let patience: NodeJS.Timeout | undefined;
    try {
      return await new Promise<number>((give, refuse) => {
        waiter = { owner, give, refuse };
        timer = setTimeout(() => {
          refuse(this.#ownOf(owner) === undefined ? overloadedCells() : queuedTooLong());
        }, this.#waitMs);
        patience = setTimeout(() => this.#takeBusy(waiter!), this.#patienceMs);
        this.#waiters.add(waiter);
        this.retry();
      });
    } finally {
      clearTimeout(timer);
      clearTimeout(patience);
      this.#waiters.delete(waiter!);
    }
  }

  /** Call when the cell of a slot ends: the slot is free when the process is gone, unless it is claimed before. */
  ending(slot: number, gone: Promise<void>): void {
    const held = this.#held.get(slot)!;
    held.gone = gone;
    unawaited(this.#freeAfter(gone, held));
  }

  async #freeAfter(gone: Promise<void>, held: HeldSlot): Promise<void> {
    await gone;
    if (this.#held.get(held.slot) === held) this.free(held.slot);
  }

  /** Whether a slot is free, and no cell of the account waits for one of its share. */
  hasRoomFor(accountId: string): boolean {
    const isWanted = [...this.#waiters].some(({ owner }) => owner.accountId === accountId);
    return this.#held.size < this.#count && !isWanted;
  }

  /** Frees a slot whose cell did not start. */
  free(slot: number): void {
    this.#held.delete(slot);
    this.retry();
  }

  /** Gives slots to waiters. Called when a cell may have become idle. */
  retry(): void {
    const failed = new Set<string>();
    for (const waiter of this.#waiters) {
      const key = keyOf(waiter.owner);
      if (failed.has(key)) continue;
      const slot = this.#take(waiter.owner);
      if (slot === undefined) {
        failed.add(key);
        continue;
      }
      this.#waiters.delete(waiter);
      waiter.give(slot);
    }
  }

  /** Refuses all waiters. */
  close(): void {
    this.#isClosed = true;
    for (const { refuse } of this.#waiters) refuse(overloadedCells());
  }

  /**
   * Gives an account without a cell a slot of the account with the most cells, even if the cell in it is busy: otherwise
   * a few accounts together could hold all slots. The requests in that cell fail, and may be sent again.
   */
  #takeBusy(waiter: Waiter): void {
    const all = [...this.#held.values()];
    const { accountId } = waiter.owner;
    if (!this.#waiters.has(waiter) || all.some(({ owner }) => owner.accountId === accountId)) return;
    const byAccount = [...Map.groupBy(all, ({ owner }) => owner.accountId).values()];
    const largest = byAccount.sort((a, b) => b.length - a.length)[0] ?? [];
    const found = largest.findLast(
      ({ slot, gone, owner }) => gone === undefined && !owner.isPlatform && this.#cells.isOpen(slot),
    );
    if (largest.length < 2 || found === undefined) return;
    const { slot } = found;
    this.#cells.end(slot);
    this.#held.set(slot, { slot, owner: waiter.owner, gone: undefined });
    this.#waiters.delete(waiter);
    waiter.give(found.gone!.then(() => slot));
  }

  #take(owner: SlotOwner): Promise<number> | undefined {
    const own = this.#ownOf(owner);
    if (own !== undefined) return this.#takeOver(own, owner);
    for (let slot = 0; slot < this.#count; slot++) {
      if (this.#held.has(slot)) continue;
      this.#held.set(slot, { slot, owner, gone: undefined });
      return Promise.resolve(slot);
    }
    return this.#takeOver([...this.#held.values()], owner);
  }

  /** For an account that has its share: its own slots, one of which has to become free for the next cell. */
  #ownOf({ accountId, isPlatform }: SlotOwner): HeldSlot[] | undefined {
    const own = [...this.#held.values()].filter((held) => held.owner.accountId === accountId);
    const ofScripts = own.filter((held) => !held.owner.isPlatform);
    if (!isPlatform && ofScripts.length >= this.#scriptsMax) return ofScripts;
    return own.length >= this.#accountMax ? own : undefined;
  }

  /** Takes a slot whose cell is ending, or the slot of the cell that was idle longest. */
  #takeOver(candidates: readonly HeldSlot[], owner: SlotOwner): Promise<number> | undefined {
    let found = candidates.find(({ gone }) => gone !== undefined);
    if (found === undefined) {
      const idle = candidates.flatMap((held) => {
        const since = this.#cells.idleSince(held.slot);
        return since === undefined ? [] : [{ held, since }];
      });
      found = idle.sort((a, b) => a.since - b.since)[0]?.held;
      if (found === undefined) return undefined;
      this.#cells.end(found.slot);
    }
    const { slot, gone } = found;
    this.#held.set(slot, { slot, owner, gone: undefined });
    return gone?.then(() => slot) ?? Promise.resolve(slot);
  }
}

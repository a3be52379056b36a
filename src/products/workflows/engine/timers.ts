import type { Clock } from "../../../platform/timers/clock.ts";
import { runAt } from "../../../platform/timers/run-at.ts";
import type { InstanceStore } from "../store/store.ts";
import { DueHeap } from "../../../platform/timers/due-heap.ts";
import { vital } from "../../../platform/util/uncaught.ts";

/** Later timers stay in the database, and are read twice in this time. */
const horizonMs = 10 * 60_000;
/** The clock may be set, and the machine may sleep. Then the timers are read again. */
const lookMs = 1000;
/** Time to boot a cell, even on a busy machine. */
const nearMs = 1000;
const wakesPerTurnMax = 256;

/** Timers of instances. Only those due before the horizon are in memory. */
export class Timers {
  /** Called with instances that may be due. */
  onDue: (rids: readonly number[]) => void = () => {};
  /** Called with the first instance that is due within `nearMs` after a time without due instances. */
  onNear: (rid: number) => void = () => {};
  readonly #store: Pick<InstanceStore, "waking">;
  readonly #clock: Clock;
  readonly #onFault: (error: unknown, what: string) => void;
  /** Ids of instances. A timer is only a hint to look at its instance. */
  readonly #heap = new DueHeap<number>();
  #timer: { due: number; cancel: () => void } | undefined;
  /** When the timers were read. */
  #readOn = -Infinity;
  #isStopped = false;

  constructor(
    store: Pick<InstanceStore, "waking">,
    clock: Clock,
    onFault: (error: unknown, what: string) => void,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#onFault = onFault;
  }

  /** How late the most overdue timer is; 0 if none is due. */
  get lateMs(): number {
    const due = this.#heap.next?.due;
    return due === undefined ? 0 : Math.max(0, this.#clock.now() - due);
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  /**
   * Looks at the instance again at `due`. Later timers than the horizon of this moment are read from the database before
   * they are due.
   */
  arm(due: number, rid: number): void {
    if (due >= this.#clock.now() + horizonMs) return;
    this.#heap.push(due, rid);
    this.#set();
  }

  clear(): void {
    this.#heap.take(Infinity, Infinity);
  }

  /** Loads the timers of some shards up to the horizon. */
  async load(shards: readonly number[] | undefined): Promise<void> {
    const end = this.#clock.now() + horizonMs;
    for (const { rid, wakeOn } of await this.#store.waking(end, shards)) this.#heap.push(wakeOn, rid);
    this.#set();
  }

  /** Loads the timers up to the horizon, now and whenever half of that time has passed on the clock, or it was put back. */
  async keepHorizon(shards: () => readonly number[] | undefined): Promise<void> {
    if (this.#isStopped) return;
    const now = this.#clock.now();
    if (Math.abs(now - this.#readOn) >= horizonMs / 2) {
      try {
        await this.load(shards());
        this.#readOn = now;
      } catch (error) {
        this.#onFault(error, "timers of workflows could not be read; trying again");
      }
    }
    this.#clock.after(lookMs, () => {
      vital("Reading the timers of workflows", this.keepHorizon(shards));
    });
  }

  #set(): void {
    const due = this.#heap.next?.due;
    if (due === undefined || this.#isStopped) return;
    if (this.#timer !== undefined) {
      if (this.#timer.due <= due) return;
      this.#timer.cancel();
    }
    const isFar = due - this.#clock.now() > nearMs;
    const cancel = runAt(isFar ? due - nearMs : due, () => this.#fire(), this.#clock);
    this.#timer = { due, cancel };
  }

  #fire(): void {
    this.#timer = undefined;
    if (this.#isStopped) return;
    const now = this.#clock.now();
    const rids = this.#heap.take(now, wakesPerTurnMax);
    const { next } = this.#heap;
    if (rids.length > 0) this.onDue(rids);
    else if (next !== undefined && next.due - now <= nearMs) this.onNear(next.item);
    this.#set();
  }
}

import type { Clock } from "../../../platform/timers/clock.ts";
import type { InstanceStore } from "../store/store.ts";
import { DueHeap } from "../../../platform/timers/due-heap.ts";
import { vital } from "../../../platform/util/uncaught.ts";

/** Later timers stay in the database. */
const horizonMs = 10 * 60_000;
const timerMsMax = 5000;
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
  #horizonEnd = 0;
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
   * Looks at the instance again at `due` when that is before the horizon; later timers are read from the
   * database.
   */
  arm(due: number, rid: number): void {
    if (due >= this.#horizonEnd && this.#horizonEnd > 0) return;
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

  /** Loads the timers up to the horizon, now and periodically. */
  async keepHorizon(shards: () => readonly number[] | undefined): Promise<void> {
    if (this.#isStopped) return;
    this.#horizonEnd = this.#clock.now() + horizonMs;
    let againMs = horizonMs / 2;
    try {
      await this.load(shards());
    } catch (error) {
      this.#onFault(error, "timers of workflows could not be read; trying again");
      this.#horizonEnd = 0; // until timers can be read, all are kept in memory
      againMs = 1000;
    }
    this.#clock.after(againMs, () => {
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
    const leftMs = due - this.#clock.now();
    // Timeouts are short because the clock may be set and the machine may sleep.
    const afterMs = Math.min(leftMs > nearMs ? leftMs - nearMs : leftMs, timerMsMax);
    this.#timer = { due, cancel: this.#clock.after(afterMs, () => this.#fire()) };
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

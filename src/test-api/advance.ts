import { setImmediate as turn, setTimeout as delay } from "node:timers/promises";
import type { DueWork } from "../capability.ts";
import { clock } from "../platform/timers/clock.ts";
import { unawaited } from "../platform/util/uncaught.ts";
import { TestFault } from "./test-fault.ts";
import type { MovableClock } from "./test-clock.ts";

/** The work that came due while the clock was moved: in order, by the names of capabilities. */
export interface Movement {
  from: string;
  to: string;
  /** `at` is the due time; `kind` is schedules, workflows, queues or alarms. */
  work: { kind: string; at: string }[];
}

export const stepsMax = 10_000;
const settleMsMax = 30_000;
const calmTurns = 3;
const lookMs = 2;
const skipMs = 10;

interface MoverParts {
  clock: MovableClock;
  due: Readonly<Record<string, DueWork>>;
  /** Number of calls of the management API in progress. */
  callsInFlight: () => number;
}

/** Moves the clock, and runs the work that comes due on the way, in order. */
export class Mover {
  readonly #parts: MoverParts;
  #skipping: NodeJS.Timeout | undefined;
  #isMoving = false;

  constructor(parts: MoverParts) {
    this.#parts = parts;
  }

  /** Jumps to the next due work whenever nothing runs, until `stop`. */
  skip(onFault: (error: unknown) => void): void {
    this.stop();
    this.#skipping = setInterval(() => {
      if (this.#isMoving || this.#isBusy()) return;
      unawaited(this.next().catch((error: unknown) => onFault(error)));
    }, skipMs).unref();
  }

  stop(): void {
    clearInterval(this.#skipping);
  }

  /** Moves the clock to `toMs`; every piece of work runs at its time and ends before the next one begins. */
  async to(toMs: number, { max = stepsMax, settles = true } = {}): Promise<Movement> {
    const { clock: moved } = this.#parts;
    const fromMs = moved.now();
    if (toMs < fromMs)
      throw new TestFault(
        400,
        `Expected a time after ${isoOf(fromMs)} but received ${isoOf(toMs)}: only reset and restore go back`,
      );
    return this.#moving(async () => {
      const work: Movement["work"] = [];
      for (let rounds = 0; ; rounds++) {
        if (settles) await this.settle();
        const nextMs = await this.#nextMs();
        if (nextMs === undefined || nextMs > toMs) break;
        if (Math.max(work.length, rounds) >= max)
          throw new TestFault(
            409,
            `More than ${max} pieces of work came due. Move by less, or set a higher max`,
          );
        work.push(...(await this.#fireAt(Math.max(nextMs, moved.now()))));
      }
      if (moved.now() < toMs) moved.set(toMs);
      if (settles) await this.settle();
      return { from: isoOf(fromMs), to: isoOf(moved.now()), work };
    });
  }

  /** Moves the clock to the next due work; not at all if none is waiting. */
  async next(): Promise<Movement> {
    return this.#moving(async () => {
      await this.settle();
      const fromMs = this.#parts.clock.now();
      const nextMs = await this.#nextMs();
      const work = nextMs === undefined ? [] : await this.#fireAt(Math.max(nextMs, fromMs));
      await this.settle();
      return { from: isoOf(fromMs), to: isoOf(this.#parts.clock.now()), work };
    });
  }

  /** Resolves once no call, batch, run or step is in progress. Throws a TestFault after 30 seconds. */
  async settle(): Promise<void> {
    const deadlineMs = performance.now() + settleMsMax;
    let calm = 0;
    while (calm < calmTurns) {
      if (performance.now() > deadlineMs)
        throw new TestFault(
          409,
          `Work is still in progress after ${settleMsMax / 1000} seconds: ${this.#busy().join(", ")}`,
        );
      if (this.#isBusy()) {
        calm = 0;
        await delay(lookMs);
      } else {
        calm++;
        await turn();
      }
    }
  }

  async #moving<T>(move: () => Promise<T>): Promise<T> {
    while (this.#isMoving) await delay(lookMs);
    this.#isMoving = true;
    try {
      return await move();
    } finally {
      this.#isMoving = false;
    }
  }

  async #fireAt(nowMs: number): Promise<Movement["work"]> {
    const { clock: moved, due } = this.#parts;
    moved.set(nowMs);
    const fired: Movement["work"] = [];
    for (const [kind, work] of Object.entries(due))
      for (const each of await work.run()) fired.push({ kind, at: isoOf(clock.now()), ...each });
    return fired;
  }

  async #nextMs(): Promise<number | undefined> {
    const times = await Promise.all(Object.values(this.#parts.due).map(async (work) => work.next()));
    const known = times.filter((time) => time !== undefined);
    return known.length === 0 ? undefined : Math.min(...known);
  }

  #busy(): string[] {
    const { due, callsInFlight } = this.#parts;
    const names = Object.entries(due).flatMap(([kind, work]) => (work.inFlight() > 0 ? [kind] : []));
    return callsInFlight() > 0 ? ["calls", ...names] : names;
  }

  #isBusy(): boolean {
    return this.#busy().length > 0;
  }
}

const isoOf = (ms: number): string => new Date(ms).toISOString();

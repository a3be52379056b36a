import { setImmediate as turn, setTimeout as delay } from "node:timers/promises";
import type { DueWork } from "../capability.ts";
import { clock } from "../platform/timers/clock.ts";
import { clockMoved } from "../platform/timers/run-at.ts";
import { unawaited } from "../platform/util/uncaught.ts";
import { isPossibleTime, possibleTimes } from "./possible-time.ts";
import { TestFault } from "./test-fault.ts";
import type { MovableClock } from "./test-clock.ts";

/** The work that came due while the clock was moved: in order, by the names of capabilities. */
export interface Movement {
  from: string;
  to: string;
  /** `at` is the due time; `kind` is schedules, workflows, queues or alarms. */
  work: { kind: string; at: string }[];
  /** Numbers of expired keys, messages, instances, tokens and entries, by kind. */
  expired: Record<string, number>;
}

export const stepsMax = 10_000;
const settleMsMax = 30_000;
const calmTurns = 3;
const lookMs = 2;
const skipMs = 10;

interface MoverParts {
  clock: MovableClock;
  due: Readonly<Record<string, DueWork>>;
  /** Removes what has expired by now. Resolves with the numbers since the start, by kind. */
  expire: () => Promise<Readonly<Record<string, number>>>;
  /** Number of calls of the management API in progress. */
  callsInFlight: () => number;
  /** Runs writes of the test kit, without faults. */
  own: <T>(work: () => Promise<T>) => Promise<T>;
}

/** Moves the clock, and runs the work that comes due on the way, in order. */
export class Mover {
  readonly #parts: MoverParts;
  #skipping: NodeJS.Timeout | undefined;
  #isMoving = false;
  /** Number of times that a state was restored. A movement that began before one moves no further. */
  #restores = 0;

  constructor(parts: MoverParts) {
    this.#parts = parts;
  }

  /** Jumps to the next due work whenever nothing runs, until `stop`. */
  skip(onFault: (error: unknown) => void): void {
    this.stop();
    this.#skipping = setInterval(() => {
      if (this.#isMoving || this.#isBusy()) return;
      const begun = this.#restores;
      const failed = (error: unknown): void => {
        if (begun !== this.#restores) return;
        this.stop(); // the same fault would return at once
        onFault(error);
      };
      unawaited(this.next().catch(failed));
    }, skipMs).unref();
  }

  stop(): void {
    clearInterval(this.#skipping);
  }

  /** Ends movements in progress, because a state is being restored, whose time they must not change. */
  end(): void {
    this.stop();
    this.#restores++;
  }

  /** Moves the clock to `toMs`; every piece of work runs at its time and ends before the next one begins. */
  async to(toMs: number, { max = stepsMax, settles = true } = {}): Promise<Movement> {
    const { clock: moved } = this.#parts;
    const fromMs = moved.now();
    refuseImpossible(toMs);
    if (toMs < fromMs)
      throw new TestFault(
        400,
        `Expected a time after ${isoOf(fromMs)} but received ${isoOf(toMs)}: only reset and restore go back`,
      );
    return this.#moving(async (stillMoving) => {
      this.#refuseTooMany(toMs, max);
      const work: Movement["work"] = [];
      const before = await this.#expire();
      for (let rounds = 0; ; rounds++) {
        if (settles) await this.settle();
        const nextMs = await this.#nextMs();
        stillMoving();
        if (nextMs === undefined || nextMs > toMs) break;
        if (Math.max(work.length, rounds) >= max)
          throw new TestFault(
            409,
            `More than ${max} pieces of work came due. Move by less, or set a higher max`,
          );
        work.push(...(await this.#fireAt(Math.max(nextMs, moved.now()))));
        stillMoving();
      }
      if (moved.now() < toMs) moved.set(toMs);
      if (settles) await this.settle();
      stillMoving();
      const expired = grown(before, await this.#expire());
      stillMoving();
      return { from: isoOf(fromMs), to: isoOf(moved.now()), work, expired };
    });
  }

  /** Refuses a movement before anything runs if the schedules alone have more runs than it may have. */
  #refuseTooMany(toMs: number, max: number): void {
    const counts = Object.values(this.#parts.due).map((work) => work.scheduled?.(toMs) ?? 0);
    const runs = counts.reduce((sum, count) => sum + count, 0);
    if (runs > max)
      throw new TestFault(
        409,
        `More than ${max} pieces of work would come due: schedules have ${runs} runs until then. Nothing has run. ` +
          "Move by less, or set a higher max",
      );
  }

  /** Moves the clock to the next due work; not at all if none is waiting. */
  async next(): Promise<Movement> {
    return this.#moving(async (stillMoving) => {
      await this.settle();
      const fromMs = this.#parts.clock.now();
      const nextMs = await this.#nextMs();
      stillMoving();
      refuseImpossible(nextMs ?? fromMs);
      if (nextMs === undefined) return { from: isoOf(fromMs), to: isoOf(fromMs), work: [], expired: {} };
      const before = await this.#expire();
      stillMoving();
      const work = await this.#fireAt(Math.max(nextMs, fromMs));
      await this.settle();
      const expired = grown(before, await this.#expire());
      return { from: isoOf(fromMs), to: isoOf(this.#parts.clock.now()), work, expired };
    });
  }

  /** Resolves once no call, batch, run or step is in progress, and all changes are stored. Throws a TestFault after 30 seconds. */
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
    await this.store();
  }

  async #expire(): Promise<Readonly<Record<string, number>>> {
    return this.#parts.own(this.#parts.expire);
  }

  /** Stores the changes that would be stored soon. */
  async store(): Promise<void> {
    const { due, own } = this.#parts;
    await own(async () => Promise.all(Object.values(due).map(async (work) => work.store?.())));
  }

  /** `stillMoving` throws if a state was restored meanwhile. */
  async #moving<T>(move: (stillMoving: () => void) => Promise<T>): Promise<T> {
    const begun = this.#restores;
    const stillMoving = (): void => {
      if (begun !== this.#restores)
        throw new TestFault(
          409,
          "A state was restored while the clock moved. The clock has the time of the state",
        );
    };
    while (this.#isMoving) await delay(lookMs);
    this.#isMoving = true;
    try {
      stillMoving();
      return await move(stillMoving);
    } finally {
      this.#isMoving = false;
      clockMoved();
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

function refuseImpossible(ms: number): void {
  if (!isPossibleTime(ms)) throw new TestFault(400, `Expected ${possibleTimes}`);
}

/** The kinds whose numbers have grown, and by how much. */
const grown = (
  before: Readonly<Record<string, number>>,
  after: Readonly<Record<string, number>>,
): Record<string, number> =>
  Object.fromEntries(
    Object.entries(after)
      .map(([kind, count]) => [kind, count - (before[kind] ?? 0)] as const)
      .filter(([, count]) => count > 0),
  );

const isoOf = (ms: number): string => new Date(ms).toISOString();

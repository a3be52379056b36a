import type { ControlClient } from "./control-client.ts";

/** Milliseconds, or a text such as "30 days", "1 hour" or "90 seconds". */
export type Duration = string | number;

const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  second: 1000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  week: 604_800_000,
  month: 30 * 86_400_000,
  year: 365 * 86_400_000,
};

/** The milliseconds of a duration. Throws the error that `refusal` makes of a message if it is none. */
export function durationMsOf(
  duration: Duration,
  refusal: (message: string) => Error = (message) => new Error(message),
): number {
  if (typeof duration === "number" && duration >= 0) return duration;
  const [, count, name = ""] = /^(\d+(?:\.\d+)?) ?([a-z]+)$/i.exec(String(duration).trim()) ?? [];
  const unit = name.toLowerCase();
  const each = unitMs[unit] ?? unitMs[unit.replace(/s$/, "")];
  if (count === undefined || each === undefined)
    throw refusal(`Expected a duration such as "30 days" but received ${JSON.stringify(duration)}`);
  return Math.round(Number(count) * each);
}

/** The work that came due while the clock was moved, in order. */
export interface Fired {
  from: Date;
  to: Date;
  /** `kind` is schedules, workflows, queues or alarms; `at` is the virtual time. */
  work: readonly FiredWork[];
  /** Numbers of expired keys (`kv`), messages (`queues`), instances (`workflows`), `tokens` and entries of `audit`. */
  expired: Readonly<Record<string, number>>;
}
export interface FiredWork {
  readonly kind: string;
  readonly at: string;
  readonly [detail: string]: unknown;
}

/** The clock of the platform. It only moves forward, except that `reset` and `restore` return to an earlier time. */
export interface TestClock {
  now(): Promise<Date>;
  /** Stops the clock. */
  freeze(): Promise<void>;
  /** Lets the clock run again, from its current time. */
  run(): Promise<void>;
  /** From now on, the clock jumps to the next due work whenever nothing runs. */
  skip(): Promise<void>;
  /** Moves the clock to a time, and runs the work that comes due on the way, as `advance` does. */
  set(at: Date | string): Promise<Fired>;
  /**
   * Moves the clock, and runs the work that comes due on the way, in order. `max` limits the pieces of work; 10,000 by
   * default. With `settle: false`, does not wait for work in progress.
   */
  advance(by: Duration, options?: { settle?: boolean; max?: number }): Promise<Fired>;
  /** Moves the clock to the next due work, and runs it. */
  next(): Promise<Fired>;
}

interface ShownTime {
  now: string;
  fired?: { from: string; to: string; work: FiredWork[]; expired: Record<string, number> };
}

export function clockOf(control: ControlClient): TestClock {
  const patch = async (change: object): Promise<ShownTime> => control.json("PATCH", "/clock", change);
  const moved = async (change: object): Promise<Fired> => {
    const { from, to, ...fired } = (await patch(change)).fired!;
    return { from: new Date(from), to: new Date(to), ...fired };
  };
  const change = async (mode: string): Promise<void> => {
    await patch({ mode });
  };
  return {
    now: async () => new Date((await control.json<ShownTime>("GET", "/clock")).now),
    freeze: async () => change("frozen"),
    run: async () => change("real"),
    skip: async () => change("skip"),
    async set(at) {
      const time = new Date(at);
      if (Number.isNaN(time.getTime()))
        throw new Error(`Expected a time such as 2026-01-31T12:00:00Z but received ${String(at)}`);
      return moved({ now: time.toISOString() });
    },
    advance: async (by, options = {}) => moved({ advance: by, ...options }),
    next: async () => moved({ next: true }),
  };
}

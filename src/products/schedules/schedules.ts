import { DomainErrors } from "../../platform/domain-error.ts";
import type { Scripts } from "../../workers/scripts/scripts.ts";
import { FreshReads } from "../../platform/storage/changes/fresh-reads.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { earliest } from "../../platform/timers/earliest.ts";
import { readCron, type Timetable } from "./cron.ts";
import { scheduleErrors } from "./errors.ts";
import type { Schedule } from "./schedule.ts";
import * as store from "./store.ts";
import { clock } from "../../platform/timers/clock.ts";

export interface PlannedSchedule extends Schedule {
  timetable: Timetable;
  /** The next run in epoch milliseconds; undefined when there is none. */
  nextOn: number | undefined;
}

/** The runs of a schedule that this node has claimed. */
export interface Claimed {
  schedule: Schedule;
  /** The minute to run; undefined when all claimed minutes were missed. */
  runOn: number | undefined;
  /** The last claimed minute. */
  until: number;
  missedRuns: number;
  lastMissedOn: number | undefined;
}

export const minuteMs = 60_000;

/** The schedules of all accounts, kept in memory with their next run. */
export class Schedules {
  readonly #storage: Storage;
  readonly #scripts: Pick<Scripts, "get" | "lock">;
  #all = new Map<string, PlannedSchedule>();
  readonly #reads = new FreshReads(
    () => this.#read(),
    (all) => (this.#all = all),
  );

  constructor(storage: Storage, scripts: Pick<Scripts, "get" | "lock" | "onDelete">) {
    this.#storage = storage;
    this.#scripts = scripts;
    scripts.onDelete(async (trx, { accountId, namespaceId, name }, changed) => {
      if (namespaceId !== null) return;
      await store.remove(trx, accountId, name);
      changed({ kind: "schedule", id: name, parentId: accountId });
    });
    storage.onChange(async (changes) => {
      if (changes.some(({ kind }) => kind === "schedule" || kind === "account")) await this.load();
    }, this.#reads.reload);
  }

  async load(): Promise<void> {
    await this.#reads.load();
  }

  async #read(): Promise<Map<string, PlannedSchedule>> {
    const all = new Map<string, PlannedSchedule>();
    for (const schedule of await store.loadAll(this.#storage.read)) {
      const known = this.#all.get(keyOf(schedule));
      const timetable = known?.timetable ?? (await readCron(schedule.cron));
      // The expression was valid when it was saved.
      if (typeof timetable === "string") throw new Error(`${schedule.cron}: ${timetable}`);
      // The next run is computed only when the last run changed, since a change reloads all schedules.
      const isSame = known?.lastRunOn === schedule.lastRunOn;
      const nextOn = isSame ? known.nextOn : timetable.next(schedule.lastRunOn);
      all.set(keyOf(schedule), { ...schedule, timetable, nextOn });
    }
    return all;
  }

  /** The next minute in which a schedule is due; undefined without one. */
  get nextOn(): number | undefined {
    return earliest([...this.#all.values()].map(({ nextOn }) => nextOn));
  }

  /** The number of runs after `fromMs`, until `toMs`. */
  runsBetween(fromMs: number, toMs: number): number {
    const counts = [...this.#all.values()].map(({ timetable }) => timetable.between(fromMs, toMs + 1).count);
    return counts.reduce((sum, count) => sum + count, 0);
  }

  list(accountId: string, scriptName: string): PlannedSchedule[] {
    return [...this.#all.values()].filter(
      (each) => each.accountId === accountId && each.scriptName === scriptName,
    );
  }

  /** Replaces a script's schedules, unless `check` throws for the current ones. Unchanged ones keep their last run. */
  async replace(
    accountId: string,
    scriptName: string,
    crons: readonly string[],
    check: (current: readonly string[]) => void = () => {},
  ): Promise<PlannedSchedule[]> {
    this.#scripts.get({ accountId }, scriptName);
    const faults = await Promise.all(
      crons.map(async (cron, i) => {
        if (crons.indexOf(cron) < i) return scheduleErrors.twice(cron, i);
        const timetable = await readCron(cron);
        return typeof timetable === "string" ? scheduleErrors.cron(cron, timetable, i) : [];
      }),
    );
    const errors = faults.flat();
    if (errors.length > 0) throw new DomainErrors(errors);

    const now = clock.now();
    await this.#storage.write(async (trx, changed) => {
      await this.#scripts.lock(trx, { accountId }, scriptName);
      const before = await store.cronsOf(trx, accountId, scriptName);
      check(before);
      const gone = before.filter((cron) => !crons.includes(cron));
      const added = crons.filter((cron) => !before.includes(cron));
      await store.remove(trx, accountId, scriptName, gone);
      const fresh = { accountId, scriptName, lastRunOn: now, missedRuns: 0, lastMissedOn: null };
      await store.insert(
        trx,
        added.map((cron) => ({ ...fresh, cron, createdOn: now, modifiedOn: now })),
      );
      changed({ kind: "schedule", id: scriptName, parentId: accountId });
    });
    return this.list(accountId, scriptName);
  }

  /**
   * Claims the due runs. The current minute is run; earlier minutes were missed and are only reported. Of
   * concurrent nodes, one gets a minute.
   */
  async claimDue(nowMs: number): Promise<Claimed[]> {
    const minute = Math.floor(nowMs / minuteMs) * minuteMs;
    const due = [...this.#all.values()]
      .filter(({ nextOn }) => nextOn !== undefined && nextOn <= minute)
      // All nodes lock rows in the same order.
      .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
      .map((schedule) => claimOf(schedule, minute));
    if (due.length === 0) return [];
    const ours = await this.#storage.write(async (trx) => {
      const claimed: Claimed[] = [];
      for (const each of due) if (await store.claim(trx, each.schedule, each)) claimed.push(each);
      return claimed;
    });
    // The claimed runs start even if the reload fails; the next claim then reloads.
    await this.load().catch(() => {});
    return ours;
  }
}

function claimOf(schedule: PlannedSchedule, minute: number): Claimed {
  const { timetable, lastRunOn } = schedule;
  const missed = timetable.between(lastRunOn, minute);
  const isDue = timetable.next(minute - 1) === minute;
  return {
    schedule,
    runOn: isDue ? minute : undefined,
    until: isDue ? minute : missed.lastMs,
    missedRuns: missed.count,
    lastMissedOn: missed.count === 0 ? undefined : missed.lastMs,
  };
}

const keyOf = ({ accountId, scriptName, cron }: Schedule): string => `${accountId}/${scriptName}/${cron}`;

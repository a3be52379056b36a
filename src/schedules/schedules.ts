import { ApiErrors } from "../api/errors.ts";
import type { Scripts } from "../scripts/scripts.ts";
import type { Storage } from "../storage/storage.ts";
import { readCron, type Timetable } from "./cron.ts";
import { scheduleErrors, type Schedule } from "./schedule.ts";
import * as store from "./store.ts";

export interface Planned extends Schedule {
  timetable: Timetable;
  /** When it is to run next; undefined when never again. */
  nextOn: number | undefined;
}

/** What this node has to do about a schedule, alone of all nodes. */
export interface Claimed {
  schedule: Schedule;
  /** The minute that it is to be run for, if one is. */
  runOn: number | undefined;
  /** The last minute that is claimed. */
  until: number;
  missedRuns: number;
  lastMissedOn: number | undefined;
}

export const minuteMs = 60_000;

/** When the scripts of accounts are to run by themselves. All of it is in memory, each with its next time. */
export class Schedules {
  readonly #storage: Storage;
  readonly #scripts: Pick<Scripts, "get">;
  #all = new Map<string, Planned>();

  constructor(storage: Storage, scripts: Pick<Scripts, "get" | "onDelete">) {
    this.#storage = storage;
    this.#scripts = scripts;
    scripts.onDelete(async (trx, { accountId, namespaceId, name }, changed) => {
      if (namespaceId !== null || this.list(accountId, name).length === 0) return;
      await store.remove(trx, accountId, name);
      changed({ kind: "schedule", id: name, parentId: accountId });
    });
    storage.onChange(async (changes) => {
      if (changes.some(({ kind }) => kind === "schedule" || kind === "account")) await this.load();
    });
  }

  async load(): Promise<void> {
    const all = new Map<string, Planned>();
    for (const schedule of await store.loadAll(this.#storage.read)) {
      const known = this.#all.get(keyOf(schedule));
      const timetable = known?.timetable ?? (await readCron(schedule.cron));
      // It could be read when it was saved.
      if (typeof timetable === "string") throw new Error(`${schedule.cron}: ${timetable}`);
      // When it runs next is looked for when it has run: all are loaded whenever one of them changes.
      const isSame = known?.lastRunOn === schedule.lastRunOn;
      const nextOn = isSame ? known.nextOn : timetable.next(schedule.lastRunOn);
      all.set(keyOf(schedule), { ...schedule, timetable, nextOn });
    }
    this.#all = all;
  }

  list(accountId: string, scriptName: string): Planned[] {
    return [...this.#all.values()].filter(
      (each) => each.accountId === accountId && each.scriptName === scriptName,
    );
  }

  /** Replaces a script's schedules. Those that stay remember when they ran. */
  async replace(accountId: string, scriptName: string, crons: readonly string[]): Promise<Planned[]> {
    this.#scripts.get({ accountId }, scriptName);
    const faults = await Promise.all(
      crons.map(async (cron, i) => {
        if (crons.indexOf(cron) < i) return scheduleErrors.twice(cron, i);
        const timetable = await readCron(cron);
        return typeof timetable === "string" ? scheduleErrors.cron(cron, timetable, i) : [];
      }),
    );
    const errors = faults.flat();
    if (errors.length > 0) throw new ApiErrors(errors);

    const before = new Set(this.list(accountId, scriptName).map(({ cron }) => cron));
    const now = Date.now();
    const added = crons.filter((cron) => !before.has(cron));
    await this.#storage.write(async (trx, changed) => {
      const gone = [...before].filter((cron) => !crons.includes(cron));
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
   * Claims what is due now. A minute is run while it lasts; what lies before it has been missed, and is only told of.
   * Of several nodes that ask at once, one gets a minute.
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
    await this.load();
    return ours;
  }
}

function claimOf(schedule: Planned, minute: number): Claimed {
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

import type { Logger } from "pino";
import { minuteMs, type Schedules } from "./schedules.ts";

export interface ScheduledRun {
  accountId: string;
  scriptName: string;
  cron: string;
  scheduledTimeMs: number;
}

/** Runs a script's `scheduled` handler. Rejects where it failed. */
export type RunScheduled = (run: ScheduledRun) => Promise<void>;

/** Looks at the schedules as each minute begins. */
export class Scheduler {
  readonly #schedules: Schedules;
  readonly #run: RunScheduled;
  readonly #logger: Logger;
  readonly #running = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(schedules: Schedules, run: RunScheduled, logger: Logger) {
    this.#schedules = schedules;
    this.#run = run;
    this.#logger = logger;
  }

  async start(): Promise<void> {
    await this.tick(Date.now());
    this.#wait();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await Promise.allSettled(this.#running);
  }

  /** Starts what is due, and tells of what was missed. */
  async tick(nowMs: number): Promise<void> {
    for (const { schedule, runOn, missedRuns, lastMissedOn } of await this.#schedules.claimDue(nowMs)) {
      const { accountId, scriptName, cron } = schedule;
      const log = { account_id: accountId, script: scriptName, cron };
      if (lastMissedOn !== undefined)
        this.#logger.warn(
          { ...log, count: missedRuns, last: new Date(lastMissedOn).toISOString() },
          "scheduled runs were missed while no node was up, and are not made up for",
        );
      if (runOn === undefined) continue;
      const running = this.#run({ accountId, scriptName, cron, scheduledTimeMs: runOn })
        .catch((error: unknown) => this.#logger.warn({ err: error, ...log }, "a scheduled run failed"))
        .finally(() => this.#running.delete(running));
      this.#running.add(running);
    }
  }

  #wait(): void {
    if (this.#isStopped) return;
    const now = Date.now();
    const nextMinute = (Math.floor(now / minuteMs) + 1) * minuteMs;
    this.#timer = setTimeout(() => {
      this.tick(Date.now())
        .catch((error: unknown) => this.#logger.warn({ err: error }, "looking for scheduled runs failed"))
        .finally(() => this.#wait());
    }, nextMinute - now);
    this.#timer.unref();
  }
}

import type { Logger } from "pino";
import { minuteMs, type Schedules } from "./schedules.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import { clock } from "../../platform/timers/clock.ts";
import { runAt } from "../../platform/timers/run-at.ts";

export interface ScheduledRun {
  accountId: string;
  scriptName: string;
  cron: string;
  scheduledTimeMs: number;
}

/** Runs a script's `scheduled` handler. Rejects when the handler fails. */
export type RunScheduled = (run: ScheduledRun) => Promise<void>;

const retryMs = 1000;

/** Checks the schedules at the start of each minute. */
export class CronScheduler {
  readonly #schedules: Schedules;
  readonly #run: RunScheduled;
  readonly #logger: Logger;
  readonly #running = new Set<Promise<void>>();
  #cancelWait = (): void => {};
  #isStopped = false;

  constructor(schedules: Schedules, run: RunScheduled, logger: Logger) {
    this.#schedules = schedules;
    this.#run = run;
    this.#logger = logger;
  }

  async start(): Promise<void> {
    await this.tick(clock.now());
    this.#wait();
  }

  /** From now on, leaves due runs to other nodes. */
  stopClaiming(): void {
    this.#isStopped = true;
    this.#cancelWait();
  }

  async stop(): Promise<void> {
    this.stopClaiming();
    await Promise.allSettled(this.#running);
  }

  /** The current runs. */
  get runningCount(): number {
    return this.#running.size;
  }

  /** Starts due runs, which it returns, and logs missed ones. */
  async tick(nowMs: number): Promise<ScheduledRun[]> {
    const started: ScheduledRun[] = [];
    for (const { schedule, runOn, missedRuns, lastMissedOn } of await this.#schedules.claimDue(nowMs)) {
      const { accountId, scriptName, cron } = schedule;
      const log = { account_id: accountId, script: scriptName, cron };
      if (lastMissedOn !== undefined)
        this.#logger.warn(
          { ...log, count: missedRuns, last: new Date(lastMissedOn).toISOString() },
          "scheduled runs were missed while no node was running; they are not run later",
        );
      if (runOn === undefined) continue;
      const run: ScheduledRun = { accountId, scriptName, cron, scheduledTimeMs: runOn };
      started.push(run);
      const running = this.#run(run)
        .catch((error: unknown) => this.#logger.warn({ err: error, ...log }, "a scheduled run failed"))
        .finally(() => this.#running.delete(running));
      this.#running.add(running);
    }
    return started;
  }

  #wait(): void {
    if (this.#isStopped) return;
    const nextMinute = (Math.floor(clock.now() / minuteMs) + 1) * minuteMs;
    this.#cancelWait = runAt(nextMinute, () => this.#tick());
  }

  /** A failed tick is repeated within its minute. */
  #tick(): void {
    unawaited(
      this.tick(clock.now()).then(
        () => this.#wait(),
        (error: unknown) => {
          this.#logger.warn({ err: error }, "looking for scheduled runs failed");
          if (!this.#isStopped) this.#cancelWait = clock.after(retryMs, () => this.#tick());
        },
      ),
    );
  }
}

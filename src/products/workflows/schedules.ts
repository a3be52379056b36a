import type { Logger } from "pino";
import { repeat } from "../../platform/util/repeat.ts";
import type { Instances } from "./instances.ts";
import { isTemporary, WorkflowError } from "./errors.ts";
import type { Workflows } from "./workflows.ts";
import { clock } from "../../platform/timers/clock.ts";
import { earliest } from "../../platform/timers/earliest.ts";

const minuteMs = 60_000;

/** An instance that a schedule has created. */
export interface ScheduledCreation {
  workflow: string;
  cron: string;
}

/**
 * Creates instances in the minutes that the schedules of workflows name. An instance's id is derived from its
 * cron expression and its minute, so concurrent nodes, and a node that restarts within a minute, create only
 * one.
 */
export class WorkflowSchedules {
  readonly #workflows: Workflows;
  readonly #instances: Instances;
  readonly #logger: Logger;
  #minute = 0;
  #stop: (() => Promise<void>) | undefined;

  constructor(workflows: Workflows, instances: Instances, logger: Logger) {
    this.#workflows = workflows;
    this.#instances = instances;
    this.#logger = logger;
  }

  start(): void {
    const message = "the schedules of workflows could not create instances";
    const failed = { logger: this.#logger, message };
    this.#stop = repeat(async () => this.tick(clock.now()), { everyMs: 1000, firstMs: 0 }, failed);
  }

  /** Forgets that this minute is done. */
  reset(): void {
    this.#minute = 0;
  }

  /** The next minute in which a schedule is due, and this one if it is not done; undefined without one. */
  nextOn(nowMs: number): number | undefined {
    const minute = Math.floor(nowMs / minuteMs) * minuteMs;
    const afterMs = minute === this.#minute ? minute : minute - 1;
    return earliest(this.#workflows.scheduled().map(({ timetable }) => timetable.next(afterMs)));
  }

  /** The number of instances that are created after `fromMs`, until `toMs`. */
  creationsBetween(fromMs: number, toMs: number): number {
    const counts = this.#workflows
      .scheduled()
      .map(({ timetable }) => timetable.between(fromMs, toMs + 1).count);
    return counts.reduce((sum, count) => sum + count, 0);
  }

  async stop(): Promise<void> {
    await this.#stop?.();
  }

  /**
   * Creates the instances due in this minute. When the database refuses the writes, the next tick repeats
   * them.
   */
  async tick(nowMs: number): Promise<ScheduledCreation[]> {
    const created: ScheduledCreation[] = [];
    const minute = Math.floor(nowMs / minuteMs) * minuteMs;
    if (minute === this.#minute) return created;
    for (const { workflow, cron, timetable } of this.#workflows.scheduled()) {
      if (timetable.next(minute - 1) !== minute) continue;
      try {
        await this.#instances.createScheduled(workflow, { cron, scheduledTime: minute });
        created.push({ workflow: workflow.name, cron });
      } catch (error) {
        if (!(error instanceof WorkflowError) || isTemporary(error)) throw error;
        const { accountId, name } = workflow;
        this.#logger.warn({ err: error, account_id: accountId, workflow: name, cron }, failedToCreate);
      }
    }
    this.#minute = minute;
    return created;
  }
}

const failedToCreate = "a schedule of a workflow could not create its instance";

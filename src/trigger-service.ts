import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { deliverTo } from "./products/queues/delivery.ts";
import { QueueDispatcher } from "./products/queues/dispatcher.ts";
import { QueueMessages } from "./products/queues/messages.ts";
import { Queues } from "./products/queues/queues.ts";
import { Retirement } from "./products/queues/retirement.ts";
import type { RuntimeServices } from "./runtime-service.ts";
import { runScheduled } from "./products/schedules/run.ts";
import { Scheduler } from "./products/schedules/scheduler.ts";
import { Schedules } from "./products/schedules/schedules.ts";
import type { ScriptServices } from "./script-service.ts";
import { TailRelay } from "./workers/tail/relay.ts";
import type { Storage } from "./platform/storage/storage.ts";

/** The services that run scripts without a request: queues, schedules and live logs. */
export interface TriggerServices {
  queues: Queues;
  queueMessages: QueueMessages;
  schedules: Schedules;
  /** Loads queues and schedules from storage. Scripts must be loaded before. */
  startTriggers(): Promise<void>;
  /** Starts running scripts. */
  runTriggers(): Promise<void>;
  /** Starts no further runs, and waits up to `deadlineMs` for those in progress. */
  stopTriggers(deadlineMs: number): Promise<void>;
}

export function createTriggerServices(
  storage: Storage,
  { scripts, references }: Pick<ScriptServices, "scripts" | "references">,
  { runtime, tails }: Pick<RuntimeServices, "runtime" | "tails">,
  logger: Logger,
): TriggerServices {
  const queues = new Queues(storage, scripts);
  references.consumedQueues = (accountId, scriptName) =>
    queues
      .list(accountId)
      .flatMap(({ id, name, consumer }) =>
        consumer?.scriptName === scriptName ? [{ id, name, consumerId: consumer.id }] : [],
      );
  const queueMessages = new QueueMessages(storage, queues);
  const schedules = new Schedules(storage, scripts);
  scripts.onGone((scriptId) => tails.endScope(scriptId));
  const deliver = deliverTo({ scripts, runtime, queueMessages, logger });
  const isShared = storage.engine === "postgres";
  const dispatcher = new QueueDispatcher(queues, queueMessages, deliver, logger, { isShared });
  const retirement = new Retirement(queues, queueMessages, logger);
  const tailRelay = isShared ? new TailRelay(storage, tails, logger) : undefined;
  const scheduler = new Scheduler(schedules, runScheduled(scripts, runtime), logger);
  return {
    queues,
    queueMessages,
    schedules,
    async startTriggers() {
      await queues.load();
      await schedules.load();
    },
    async runTriggers() {
      await dispatcher.start();
      retirement.start();
      await scheduler.start();
      await tailRelay?.start();
    },
    async stopTriggers(deadlineMs) {
      retirement.stop();
      // An open live log would keep the listener from closing.
      await tails.endAll();
      const deadline = new AbortController();
      const late = delay(deadlineMs, undefined, { signal: deadline.signal }).catch(() => {});
      await Promise.race([Promise.all([dispatcher.stop(), scheduler.stop()]), late]);
      deadline.abort();
      tailRelay?.stop();
    },
  };
}

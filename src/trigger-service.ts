import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { deliverTo } from "./queues/delivery.ts";
import { QueueDispatcher } from "./queues/dispatcher.ts";
import { QueueMessages } from "./queues/messages.ts";
import { Queues } from "./queues/queues.ts";
import type { RuntimeServices } from "./runtime-service.ts";
import { runScheduled } from "./schedules/run.ts";
import { Scheduler } from "./schedules/scheduler.ts";
import { Schedules } from "./schedules/schedules.ts";
import type { ScriptServices } from "./script-service.ts";
import { TailRelay } from "./tail/relay.ts";
import type { Storage } from "./storage/storage.ts";

/** What runs scripts without a request. */
export interface TriggerServices {
  queues: Queues;
  queueMessages: QueueMessages;
  schedules: Schedules;
  /** Reads everything that triggers are known by. To be called when scripts are known. */
  startTriggers(): Promise<void>;
  /** From now on, they run scripts. */
  runTriggers(): Promise<void>;
  /** Takes up nothing more, and waits for what is under way, but not for longer than this. */
  stopTriggers(deadlineMs: number): Promise<void>;
}

export function createTriggerServices(
  storage: Storage,
  { scripts }: Pick<ScriptServices, "scripts">,
  { runtime, tails }: Pick<RuntimeServices, "runtime" | "tails">,
  logger: Logger,
): TriggerServices {
  const queues = new Queues(storage, scripts);
  const queueMessages = new QueueMessages(storage, queues);
  const schedules = new Schedules(storage, scripts);
  const deliver = deliverTo({ scripts, runtime, queueMessages, logger });
  const isShared = storage.engine === "postgres";
  const dispatcher = new QueueDispatcher(queues, queueMessages, deliver, logger, { isShared });
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
      await scheduler.start();
      await tailRelay?.start();
    },
    async stopTriggers(deadlineMs) {
      // Whoever watches would keep the listener from closing.
      await tails.endAll();
      const deadline = new AbortController();
      const late = delay(deadlineMs, undefined, { signal: deadline.signal }).catch(() => {});
      await Promise.race([Promise.all([dispatcher.stop(), scheduler.stop()]), late]);
      deadline.abort();
      tailRelay?.stop();
    },
  };
}

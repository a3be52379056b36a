import { QueueMessages } from "./queues/messages.ts";
import { Queues } from "./queues/queues.ts";
import { Schedules } from "./schedules/schedules.ts";
import type { ScriptServices } from "./script-service.ts";
import type { Storage } from "./storage/storage.ts";

/** What runs scripts without a request. */
export interface TriggerServices {
  queues: Queues;
  queueMessages: QueueMessages;
  schedules: Schedules;
  /** Reads everything that triggers are known by. To be called when scripts are known. */
  startTriggers(): Promise<void>;
}

export function createTriggerServices(
  storage: Storage,
  { scripts }: Pick<ScriptServices, "scripts">,
): TriggerServices {
  const queues = new Queues(storage, scripts);
  const schedules = new Schedules(storage, scripts);
  return {
    queues,
    queueMessages: new QueueMessages(storage, queues),
    schedules,
    async startTriggers() {
      await queues.load();
      await schedules.load();
    },
  };
}

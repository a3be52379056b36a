import { QueueMessages } from "./queues/messages.ts";
import { Queues } from "./queues/queues.ts";
import type { ScriptServices } from "./script-service.ts";
import type { Storage } from "./storage/storage.ts";

/** What runs scripts without a request. */
export interface TriggerServices {
  queues: Queues;
  queueMessages: QueueMessages;
  /** Reads everything that triggers are known by. To be called when scripts are known. */
  startTriggers(): Promise<void>;
}

export function createTriggerServices(
  storage: Storage,
  { scripts }: Pick<ScriptServices, "scripts">,
): TriggerServices {
  const queues = new Queues(storage, scripts);
  return {
    queues,
    queueMessages: new QueueMessages(storage, queues),
    async startTriggers() {
      await queues.load();
    },
  };
}

import { binding, declare, table } from "../../declaration.ts";
import type { QueuesTable, QueueConsumersTable, QueueMessagesTable } from "./tables.ts";
import type { queueType } from "./binding-type.ts";

/** Queues. */
export const declaration = declare({
  tables: {
    queues: table<QueuesTable>(),
    queue_consumers: table<QueueConsumersTable>(),
    queue_messages: table<QueueMessagesTable>(),
  },
  migrations: {
    "0013-queue-leases": async () => (await import("./migrations/0013-queue-leases.ts")).queueLeases,
  },
  changes: ["queue"],
  bindings: {
    queue: binding<typeof queueType>(),
  },
});

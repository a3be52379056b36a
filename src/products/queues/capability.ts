import { capability } from "../../capability.ts";
import { storage } from "../../platform/capability.ts";
import { tracing } from "../../platform/tracing/capability.ts";
import { endsWithin } from "../../platform/util/ends-within.ts";
import { runtime } from "../../workers/runtime/capability.ts";
import { scripts } from "../../workers/scripts/capability.ts";
import { queueOperations } from "./api.ts";
import { queueBinding, queueType } from "./binding.ts";
import { deliverTo } from "./delivery/delivery.ts";
import { QueueDispatcher } from "./delivery/dispatcher.ts";
import { QueueMessages } from "./messages.ts";
import { Queues } from "./queues.ts";
import { Retirement } from "./delivery/retirement.ts";
import { declaration } from "./declaration.ts";
import { queueErrors } from "./errors.ts";
import { queueErrorCodes } from "./api-errors.ts";

export const queues = capability({
  name: "queues",
  declares: declaration,
  needs: [storage, scripts, runtime, tracing],
  create({ storage: database, ...needed }) {
    const created = new Queues(database, needed.scripts);
    needed.references.consumedQueues = (accountId, scriptName) =>
      created
        .list(accountId)
        .flatMap(({ id, name, consumer }) =>
          consumer?.scriptName === scriptName ? [{ id, name, consumerId: consumer.id }] : [],
        );
    return { queues: created, queueMessages: new QueueMessages(database, created) };
  },
  operations: queueOperations,
  errors: [{ title: "Queues", errors: queueErrors, codes: queueErrorCodes }],
  idParameters: ["queue_id", "subscription_id", "consumer_id"],
  bindings: (services) => ({
    queue: {
      type: queueType,
      isolate: {
        module: "products/queues/worker/binding.js",
        factory: "queueBinding",
        className: "WorkerQueue",
      },
      handler: queueBinding(services.queues, services.queueMessages),
      exists: async (accountId, name) => services.queues.findByName(accountId, name) !== undefined,
    },
  }),
  metrics: async (services) =>
    (await import("./metrics.ts")).queueMetrics(services.queues, services.queueMessages),
  load: (services) => services.queues.load(),
  async run(services) {
    const { storage: database, queues: all, queueMessages, logger } = services;
    const isShared = database.engine === "postgres";
    const dispatcher = new QueueDispatcher(all, queueMessages, deliverTo(services), logger, { isShared });
    const retirement = new Retirement(all, queueMessages, logger);
    await dispatcher.start();
    retirement.start();
    return {
      giveBack() {
        retirement.stop();
        dispatcher.stopClaiming();
      },
      async stop(deadlineMs) {
        if (!(await endsWithin(deadlineMs, dispatcher.stop()))) await dispatcher.giveBack();
      },
    };
  },
});

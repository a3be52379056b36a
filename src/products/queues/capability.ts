import { capability } from "../../capability.ts";
import { storage } from "../../platform/capability.ts";
import { tracing } from "../../platform/tracing/capability.ts";
import { endsWithin } from "../../platform/util/ends-within.ts";
import { runtime } from "../../workers/runtime/capability.ts";
import { scripts } from "../../workers/scripts/capability.ts";
import { queueBinding } from "./binding.ts";
import { deliverTo } from "./delivery/delivery.ts";
import { QueueDispatcher } from "./delivery/dispatcher.ts";
import { QueueMessages } from "./messages.ts";
import { Queues } from "./queues.ts";
import { Retirement } from "./delivery/retirement.ts";
import { shown, queuesAtEdges } from "./at-edges.ts";
import { declaration } from "./declaration.ts";
import { queueErrors } from "./errors.ts";
import { queueErrorCodes } from "./api-errors.ts";

export const queues = capability({
  name: "queues",
  declares: declaration,
  atEdges: queuesAtEdges,
  needs: [storage, scripts, runtime, tracing],
  create({ storage: database, ...needed }) {
    const created = new Queues(database, needed.scripts);
    needed.references.consumedQueues = (accountId, scriptName) =>
      created
        .list(accountId)
        .flatMap(({ id, name, consumer }) =>
          consumer?.scriptName === scriptName ? [{ id, name, consumerId: consumer.id }] : [],
        );
    const messages = new QueueMessages(database, created);
    const deliver = deliverTo({ ...needed, queueMessages: messages });
    const isShared = database.engine === "postgres";
    const queueDispatcher = new QueueDispatcher(created, messages, deliver, needed.logger, { isShared });
    return { queues: created, queueMessages: messages, queueDispatcher };
  },
  operations: async () => (await import("./api.ts")).queueOperations,
  errors: [{ title: "Queues", errors: queueErrors, codes: queueErrorCodes }],
  idParameters: ["queue_id", "subscription_id", "consumer_id"],
  bindings: (services) => ({
    queue: {
      ...shown,
      handler: queueBinding(services.queues, services.queueMessages),
      exists: async (accountId, name) => services.queues.findByName(accountId, name) !== undefined,
    },
  }),
  metrics: async (services) =>
    (await import("./metrics.ts")).queueMetrics(services.queues, services.queueMessages),
  load: (services) => services.queues.load(),
  due: ({ queueDispatcher: dispatcher, queueMessages: messages }) => ({
    next: async () => dispatcher.nextOn,
    async run() {
      const begun: object[] = [];
      await messages.expire(); // at this time they are not delivered any more
      dispatcher.onDelivery = ({ queue, scriptName, messages: delivered }) =>
        begun.push({ queue: queue.name, script: scriptName, messages: delivered.map(({ id }) => id) });
      await dispatcher.look();
      dispatcher.onDelivery = () => {};
      return begun;
    },
    inFlight: () => dispatcher.inFlight,
  }),
  async expire({ queueMessages: messages }) {
    await messages.expire();
    return { queues: messages.expired };
  },
  async run({ queues: all, queueMessages, queueDispatcher: dispatcher, logger }) {
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

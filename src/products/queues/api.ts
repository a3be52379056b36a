import { z } from "zod";
import { apiErrors } from "../../control/api/errors.ts";
import { operationsFor } from "../../control/api/operation.ts";
import { pageQuery, paginate } from "../../control/api/pagination.ts";
import { isoTime } from "../../platform/util/ids.ts";
import { consumerOperations } from "./api-consumers.ts";
import { queueErrorCodes } from "./api-errors.ts";
import { messageOperations } from "./api-messages.ts";
import { subscriptionOperations } from "./api-subscriptions.ts";
import { producersByQueue, type Producing } from "./producers.ts";
import { queueLimits, queueNamePattern, type Queue, type QueueSettings } from "./queue.ts";
import { queueResource, QueueSchema } from "./resource.ts";
import type { QueueMessages } from "./messages.ts";
import type { Queues } from "./queues.ts";
import { clock } from "../../platform/timers/clock.ts";

/** The services that these operations use. */
interface Services extends Producing {
  queueMessages: QueueMessages;
  queues: Queues;
}

const { listOperation, operation } = operationsFor<Services>(queueErrorCodes);

const NameSchema = z.string().regex(queueNamePattern);
const SettingsSchema = z.strictObject({
  delivery_delay: z.int().min(0).max(queueLimits.delaySeconds).optional(),
  delivery_paused: z.boolean().optional(),
  message_retention_period: z
    .int()
    .min(queueLimits.retentionSecondsMin)
    .max(queueLimits.retentionSecondsMax)
    .optional(),
});
/** Queues that a list may name. */
const namesMax = 100;
/** Entries of the computed lists that clients send back. */
const computedMax = 10_000;
const QueueChangeSchema = z.strictObject({
  queue_name: NameSchema.optional(),
  settings: SettingsSchema.optional(),
  // Computed fields, which clients send back unchanged.
  queue_id: z.string().optional(),
  created_on: z.string().optional(),
  modified_on: z.string().optional(),
  producers: z.array(z.unknown()).max(computedMax).optional(),
  producers_total_count: z.int().optional(),
  consumers: z.array(z.unknown()).max(computedMax).optional(),
  consumers_total_count: z.int().optional(),
});

const settingsOf = (input: z.output<typeof SettingsSchema> = {}): Partial<QueueSettings> => ({
  ...(input.delivery_delay === undefined ? {} : { deliveryDelay: input.delivery_delay }),
  ...(input.delivery_paused === undefined ? {} : { isDeliveryPaused: input.delivery_paused }),
  ...(input.message_retention_period === undefined
    ? {}
    : { retentionSeconds: input.message_retention_period }),
});

const withProducers = async (services: Services, queue: Queue): Promise<z.input<typeof QueueSchema>> =>
  queueResource(queue, (await producersByQueue(services, queue.accountId)).get(queue.name));

const base = "/accounts/{account_id}/queues";
const read = { scope: "account", permission: "queues:read" } as const;
const edit = { scope: "account", permission: "queues:edit" } as const;
// The command line tool sends JSON as plain text.
const anyType = { acceptAnyContentType: true } as const;

export const queueOperations = [
  listOperation({
    id: "queue_list",
    method: "GET",
    path: base,
    summary: "List queues",
    access: read,
    query: pageQuery({ default: 1000, max: 10_000 }).extend({
      name: z.union([z.string().transform((name) => [name]), z.array(z.string()).max(namesMax)]).optional(),
    }),
    result: QueueSchema,
    async handle({ account, query, services }) {
      const queues = services.queues
        .list(account.id)
        .filter(({ name }) => query.name === undefined || query.name.includes(name));
      const page = paginate(queues, query);
      const producers = await producersByQueue(services, account.id);
      return { ...page, items: page.items.map((queue) => queueResource(queue, producers.get(queue.name))) };
    },
  }),
  operation({
    id: "queue_create",
    method: "POST",
    path: base,
    summary: "Create a queue",
    access: edit,
    ...anyType,
    body: QueueChangeSchema.extend({ queue_name: NameSchema }),
    result: QueueSchema,
    handle: async ({ account, body, services }) =>
      queueResource(await services.queues.create(account.id, body.queue_name, settingsOf(body.settings))),
  }),
  operation({
    id: "queue_get",
    method: "GET",
    path: `${base}/{queue_id}`,
    summary: "Get a queue",
    access: read,
    result: QueueSchema,
    async handle({ account, params, services }) {
      return withProducers(services, services.queues.get(account.id, params["queue_id"]!));
    },
  }),
  ...(["PUT", "PATCH"] as const).map((method) =>
    operation({
      id: method === "PUT" ? "queue_update" : "queue_edit",
      method,
      path: `${base}/{queue_id}`,
      summary: method === "PUT" ? "Replace a queue's configuration" : "Change a queue's configuration",
      access: edit,
      ...anyType,
      body: QueueChangeSchema,
      result: QueueSchema,
      async handle({ account, params, body, services }) {
        const queue = await services.queues.update(account.id, params["queue_id"]!, {
          name: body.queue_name,
          settings: settingsOf(body.settings),
          replace: method === "PUT",
        });
        return withProducers(services, queue);
      },
    }),
  ),
  operation({
    id: "queue_delete",
    method: "DELETE",
    path: `${base}/{queue_id}`,
    summary: "Delete a queue with its messages",
    access: edit,
    result: z.null(),
    async handle({ account, params, services }) {
      const queue = services.queues.get(account.id, params["queue_id"]!);
      await services.queueMessages.purge(queue);
      await services.queues.delete(account.id, queue.id);
      return null;
    },
  }),
  operation({
    id: "queue_purge",
    method: "POST",
    path: `${base}/{queue_id}/purge`,
    summary: "Delete all messages of a queue",
    access: edit,
    ...anyType,
    body: z.strictObject({ delete_messages_permanently: z.boolean() }),
    result: QueueSchema,
    async handle({ account, params, body, services }) {
      if (!body.delete_messages_permanently)
        throw apiErrors.invalid(
          "Expected true for delete_messages_permanently: deleted messages cannot be restored",
          "/body/delete_messages_permanently",
        );
      const queue = services.queues.get(account.id, params["queue_id"]!);
      await services.queueMessages.purge(queue);
      await services.queues.update(account.id, queue.id, { settings: { purgedOn: clock.now() } });
      return withProducers(services, queue);
    },
  }),
  operation({
    id: "queue_purge_status",
    method: "GET",
    path: `${base}/{queue_id}/purge`,
    summary: "Tell when a queue was purged last",
    access: read,
    result: z.object({ started_at: z.string(), completed: z.string() }),
    async handle({ account, params, services }) {
      const { purgedOn } = services.queues.get(account.id, params["queue_id"]!).settings;
      return purgedOn === undefined
        ? { started_at: "", completed: "" }
        : { started_at: isoTime(purgedOn), completed: "true" };
    },
  }),
  ...consumerOperations,
  ...messageOperations,
  ...subscriptionOperations,
];

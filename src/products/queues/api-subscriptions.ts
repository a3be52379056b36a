import { z } from "zod";
import { operationsFor } from "../../control/api/operation.ts";
import { pageQuery, paginate } from "../../control/api/pagination.ts";
import { queueErrors } from "./errors.ts";

const { listOperation, operation } = operationsFor<object>();

/*
 * Subscriptions of queues to events of the platform. This platform sends no such events, so lists are empty
 * and creating a subscription is refused by name.
 */
const base = "/accounts/{account_id}/event_subscriptions/subscriptions";
const read = { scope: "account", permission: "queues:read" } as const;
const edit = { scope: "account", permission: "queues:edit" } as const;

const SubscriptionSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    enabled: z.boolean(),
    events: z.array(z.string()),
    source: z.looseObject({ type: z.string() }),
    destination: z.object({ type: z.literal("queues.queue"), queue_id: z.string() }),
    created_at: z.string(),
    modified_at: z.string(),
  })
  .meta({ id: "QueueEventSubscription" });

export const subscriptionOperations = [
  listOperation({
    id: "queue_subscription_list",
    method: "GET",
    path: base,
    summary: "List event subscriptions; the list is always empty",
    access: read,
    query: pageQuery({ default: 20, max: 100 }).extend({
      queue_id: z.string().optional(),
      direction: z.enum(["asc", "desc"]).optional(),
      order: z.enum(["created_at", "name", "enabled", "source"]).optional(),
    }),
    result: SubscriptionSchema,
    handle: async ({ query }) => paginate([], query),
  }),
  operation({
    id: "queue_subscription_create",
    method: "POST",
    path: base,
    summary: "Refuse an event subscription: its source is not supported",
    access: edit,
    isRefusal: true,
    acceptAnyContentType: true, // the command line tool sends JSON as plain text
    body: SubscriptionSchema.pick({
      name: true,
      enabled: true,
      events: true,
      source: true,
      destination: true,
    })
      .partial()
      .strict(),
    result: SubscriptionSchema,
    async handle({ body }) {
      throw queueErrors.noEvents(body.source?.type);
    },
  }),
  ...(["GET", "PATCH", "DELETE"] as const).map((method) =>
    operation({
      id: `queue_subscription_${{ GET: "get", PATCH: "update", DELETE: "delete" }[method]}`,
      method,
      path: `${base}/{subscription_id}`,
      summary: "Get an event subscription; always answers that it does not exist",
      access: method === "GET" ? read : edit,
      isRefusal: true,
      acceptAnyContentType: true,
      result: SubscriptionSchema,
      async handle({ params }) {
        throw queueErrors.noSubscription(params["subscription_id"]!);
      },
    }),
  ),
];

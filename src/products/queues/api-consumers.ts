import { z } from "zod";
import { apiErrors } from "../../control/api/errors.ts";
import { operationsFor } from "../../control/api/operation.ts";
import { queueLimits, type ConsumerSettings } from "./queue.ts";
import type { ConsumerInput, Queues } from "./queues.ts";
import { consumerResource, ConsumerSchema } from "./resource.ts";

/** The services that these operations use. */
interface Services {
  queues: Queues;
}

const { operation } = operationsFor<Services>();

const ConsumerInputSchema = z.strictObject({
  type: z.enum(["worker", "http_pull"]),
  script_name: z.string().min(1).max(255).optional(),
  /** Environments are separate scripts; only the default one is accepted. */
  environment_name: z.enum(["", "production"]).optional(),
  dead_letter_queue: z.string().max(63).optional(),
  settings: z
    .strictObject({
      batch_size: z.int().min(1).max(queueLimits.consumerBatch).optional(),
      max_retries: z.int().min(0).max(queueLimits.retries).optional(),
      retry_delay: z.int().min(0).max(queueLimits.delaySeconds).optional(),
      max_wait_time_ms: z.int().min(0).max(queueLimits.waitTimeMs).optional(),
      max_concurrency: z.int().min(1).max(queueLimits.concurrency).nullable().optional(),
      visibility_timeout_ms: z.int().min(1000).max(queueLimits.visibilityTimeoutMs).optional(),
    })
    .default({}),
  // Computed fields, which clients send back unchanged.
  consumer_id: z.string().optional(),
  queue_id: z.string().optional(),
  queue_name: z.string().optional(),
  script: z.string().optional(),
  created_on: z.string().optional(),
});

/** Settings that belong to the other type of consumer. */
const foreign = {
  worker: ["visibility_timeout_ms"],
  http_pull: ["max_wait_time_ms", "max_concurrency"],
} as const;

function consumerInput(body: z.output<typeof ConsumerInputSchema>): ConsumerInput {
  const { type, settings } = body;
  for (const field of foreign[type])
    if (settings[field] !== undefined)
      throw apiErrors.invalid(
        `Unknown field "${field}" for a consumer of the type ${type}`,
        `/body/settings/${field}`,
      );
  if (type === "worker" && body.script_name === undefined)
    throw apiErrors.invalid("Expected a string for script_name, which is required", "/body/script_name");
  if (type === "http_pull" && body.script_name !== undefined)
    throw apiErrors.invalid("A consumer of the type http_pull has no script", "/body/script_name");
  const given: Record<keyof ConsumerSettings, number | null | undefined> = {
    batchSize: settings.batch_size,
    maxRetries: settings.max_retries,
    retryDelay: settings.retry_delay,
    maxWaitTimeMs: settings.max_wait_time_ms,
    maxConcurrency: settings.max_concurrency,
    visibilityTimeoutMs: settings.visibility_timeout_ms,
  };
  return {
    type,
    scriptName: body.script_name ?? null,
    deadLetterQueue:
      body.dead_letter_queue === undefined || body.dead_letter_queue === "" ? null : body.dead_letter_queue,
    settings: Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
  };
}

const base = "/accounts/{account_id}/queues/{queue_id}/consumers";
const read = { scope: "account", permission: "queues:read" } as const;
const edit = { scope: "account", permission: "queues:edit" } as const;

export const consumerOperations = [
  operation({
    id: "queue_consumer_list",
    method: "GET",
    path: base,
    summary: "List the consumers of a queue",
    access: read,
    result: z.array(ConsumerSchema),
    async handle({ account, params, services }) {
      const queue = services.queues.get(account.id, params["queue_id"]!);
      return queue.consumer === undefined ? [] : [consumerResource(queue, queue.consumer)];
    },
  }),
  operation({
    id: "queue_consumer_create",
    method: "POST",
    path: base,
    summary: "Add a consumer to a queue: a script, or http_pull",
    access: edit,
    acceptAnyContentType: true,
    body: ConsumerInputSchema,
    result: ConsumerSchema,
    async handle({ account, params, body, services }) {
      const { queues } = services;
      const id = params["queue_id"]!;
      const consumer = await queues.createConsumer(account.id, id, consumerInput(body));
      return consumerResource(queues.get(account.id, id), consumer);
    },
  }),
  operation({
    id: "queue_consumer_get",
    method: "GET",
    path: `${base}/{consumer_id}`,
    summary: "Get a consumer",
    access: read,
    result: ConsumerSchema,
    async handle({ account, params, services }) {
      const id = params["queue_id"]!;
      const consumer = services.queues.consumer(account.id, id, params["consumer_id"]!);
      return consumerResource(services.queues.get(account.id, id), consumer);
    },
  }),
  operation({
    id: "queue_consumer_update",
    method: "PUT",
    path: `${base}/{consumer_id}`,
    summary: "Replace a consumer's configuration",
    access: edit,
    acceptAnyContentType: true,
    body: ConsumerInputSchema,
    result: ConsumerSchema,
    async handle({ account, params, body, services }) {
      const { queues } = services;
      const id = params["queue_id"]!;
      const consumer = await queues.updateConsumer(
        account.id,
        id,
        params["consumer_id"]!,
        consumerInput(body),
      );
      return consumerResource(queues.get(account.id, id), consumer);
    },
  }),
  operation({
    id: "queue_consumer_delete",
    method: "DELETE",
    path: `${base}/{consumer_id}`,
    summary: "Delete a consumer",
    access: edit,
    result: z.null(),
    async handle({ account, params, services }) {
      await services.queues.deleteConsumer(account.id, params["queue_id"]!, params["consumer_id"]!);
      return null;
    },
  }),
];

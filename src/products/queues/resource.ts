import { z } from "zod";
import { isoTime } from "../../platform/util/ids.ts";
import type { Consumer, Queue } from "./queue.ts";

export const ConsumerSchema = z
  .object({
    consumer_id: z.string(),
    type: z.enum(["worker", "http_pull"]),
    queue_name: z.string(),
    /** For workers only. `script` is the older name, which wrangler reads. */
    script_name: z.string().optional(),
    script: z.string().optional(),
    dead_letter_queue: z.string(),
    settings: z.object({
      batch_size: z.int(),
      max_retries: z.int(),
      retry_delay: z.int(),
      max_wait_time_ms: z.int().optional(),
      max_concurrency: z.int().nullable().optional(),
      visibility_timeout_ms: z.int().optional(),
    }),
    created_on: z.string(),
  })
  .meta({ id: "QueueConsumer" });

export const QueueSchema = z
  .object({
    queue_id: z.string(),
    queue_name: z.string(),
    created_on: z.string(),
    modified_on: z.string(),
    producers_total_count: z.int(),
    producers: z.array(z.object({ type: z.literal("worker"), script: z.string() })),
    consumers_total_count: z.int(),
    consumers: z.array(ConsumerSchema),
    settings: z.object({
      delivery_delay: z.int(),
      delivery_paused: z.boolean(),
      message_retention_period: z.int(),
    }),
  })
  .meta({ id: "Queue" });

export function consumerResource(queue: Queue, consumer: Consumer): z.input<typeof ConsumerSchema> {
  const { settings } = consumer;
  const shared = {
    batch_size: settings.batchSize,
    max_retries: settings.maxRetries,
    retry_delay: settings.retryDelay,
  };
  const common = {
    consumer_id: consumer.id,
    type: consumer.type,
    queue_name: queue.name,
    dead_letter_queue: consumer.deadLetterQueue ?? "",
    created_on: isoTime(consumer.createdOn),
  };
  if (consumer.type === "http_pull")
    return { ...common, settings: { ...shared, visibility_timeout_ms: settings.visibilityTimeoutMs } };
  return {
    ...common,
    script_name: consumer.scriptName!,
    script: consumer.scriptName!,
    settings: {
      ...shared,
      max_wait_time_ms: settings.maxWaitTimeMs,
      max_concurrency: settings.maxConcurrency,
    },
  };
}

/** `producers` are the scripts with a binding to the queue. */
export function queueResource(queue: Queue, producers: readonly string[] = []): z.input<typeof QueueSchema> {
  const { settings, consumer } = queue;
  const consumers = consumer === undefined ? [] : [consumerResource(queue, consumer)];
  return {
    queue_id: queue.id,
    queue_name: queue.name,
    created_on: isoTime(queue.createdOn),
    modified_on: isoTime(queue.modifiedOn),
    producers_total_count: producers.length,
    producers: producers.map((script) => ({ type: "worker", script })),
    consumers_total_count: consumers.length,
    consumers,
    settings: {
      delivery_delay: settings.deliveryDelay,
      delivery_paused: settings.isDeliveryPaused,
      message_retention_period: settings.retentionSeconds,
    },
  };
}

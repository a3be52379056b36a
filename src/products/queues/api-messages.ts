import { z } from "zod";
import { operationsFor } from "../../control/api/operation.ts";
import type { QueueMessages } from "./messages.ts";
import { queueErrors } from "./errors.ts";
import { queueLimits, type QueueMessage, type OutgoingMessage, type Queue } from "./queue.ts";
import type { Backlog } from "./store-messages.ts";
import type { Queues } from "./queues.ts";

/** The services that these operations use. */
interface Services {
  queueMessages: QueueMessages;
  queues: Queues;
}

const { operation } = operationsFor<Services>();

const delay = z.int().min(0).max(queueLimits.delaySeconds);
/** Leases that one call may name. */
const leasesMax = 10_000;
const MessageInputSchema = z.strictObject({
  body: z.json(),
  content_type: z.enum(["json", "text"]).default("json"),
  delay_seconds: delay.optional(),
});
const MetricsSchema = z
  .object({
    backlog_count: z.int(),
    backlog_bytes: z.int(),
    oldest_message_timestamp_ms: z.int(),
  })
  .meta({ id: "QueueMetrics" });
const PushedSchema = z.object({ metadata: z.object({ metrics: MetricsSchema }) });
const ReceivedSchema = z.object({
  id: z.string(),
  body: z.string(),
  attempts: z.int(),
  timestamp_ms: z.int(),
  metadata: z.record(z.string(), z.string()),
});
const warnings = z.record(z.string(), z.string());

function outgoing(input: z.output<typeof MessageInputSchema>, index?: number): OutgoingMessage {
  const { body, content_type: contentType, delay_seconds: delaySeconds } = input;
  if (contentType === "text" && typeof body !== "string")
    throw queueErrors.message("Expected a string for the body of a message of the content type text", index);
  const text = contentType === "text" ? (body as string) : JSON.stringify(body);
  return { contentType, body: Buffer.from(text), delaySeconds };
}

const metrics = ({ count, bytes, oldestOn }: Backlog): z.input<typeof MetricsSchema> => ({
  backlog_count: count,
  backlog_bytes: bytes,
  oldest_message_timestamp_ms: oldestOn,
});

/** Text is returned as text, all other types in base64. */
const received = (message: QueueMessage): z.input<typeof ReceivedSchema> => ({
  id: message.id,
  body: Buffer.from(message.body).toString(message.contentType === "text" ? "utf8" : "base64"),
  attempts: message.attempts,
  timestamp_ms: message.sentOn,
  metadata: { "CF-Content-Type": message.contentType },
});

/** A lease id names a message and its lease. */
const leaseId = (number: number, lease: string): string => `${number}.${lease}`;

/** Lease ids by lease; invalid ids go to `failed`. */
function byLease(ids: readonly string[], failed: Record<string, string>): Map<string, Map<number, string>> {
  const leases = new Map<string, Map<number, string>>();
  for (const id of ids) {
    const match = /^(\d{1,15})\.(p-[0-9a-f-]{36})$/.exec(id);
    if (match === null) {
      failed[id] = "it is not a lease id";
      continue;
    }
    const numbers = leases.get(match[2]!) ?? new Map<number, string>();
    leases.set(match[2]!, numbers.set(Number(match[1]), id));
  }
  return leases;
}
const ended = "the lease has ended, or the message was deleted";

const base = "/accounts/{account_id}/queues/{queue_id}";
const read = { scope: "account", permission: "queues:read" } as const;
const edit = { scope: "account", permission: "queues:edit" } as const;
interface Located {
  account: { id: string };
  params: Record<string, string>;
  services: Services;
}
const queueOf = ({ account, params, services }: Located): Queue =>
  services.queues.get(account.id, params["queue_id"]!);

async function push(call: Located, messages: OutgoingMessage[], delaySeconds?: number) {
  const queue = queueOf(call);
  await call.services.queueMessages.send(queue, messages, delaySeconds);
  return { metadata: { metrics: metrics(await call.services.queueMessages.backlogEstimate(queue)) } };
}

/** Refuses queues with a worker consumer, which would receive some of the messages. */
function pulled(call: Located): Queue {
  const queue = queueOf(call);
  if (queue.consumer?.type !== "http_pull") throw queueErrors.notPulled(queue.name);
  return queue;
}

async function settle(
  messages: QueueMessages,
  queue: Queue,
  acks: readonly string[],
  retries: ReadonlyMap<string, number>,
): Promise<{ ackCount: number; retryCount: number; warnings: Record<string, string> }> {
  const failed: Record<string, string> = {};
  const leases = byLease([...new Set([...acks, ...retries.keys()])], failed);
  let [ackCount, retryCount] = [0, 0];
  for (const [lease, ids] of leases) {
    const all = [...ids].map(([number, id]) => ({ number, delaySeconds: retries.get(id) }));
    const done = await messages.settle(queue, lease, {
      acks: all.filter((each) => each.delaySeconds === undefined).map(({ number }) => number),
      retries: all.flatMap(({ number, delaySeconds }) =>
        delaySeconds === undefined ? [] : [{ number, delaySeconds }],
      ),
    });
    for (const [number, id] of ids) {
      if (!done.has(number)) failed[id] = ended;
      else if (retries.has(id)) retryCount += 1;
      else ackCount += 1;
    }
  }
  return { ackCount, retryCount, warnings: failed };
}

const PeekSchema = z.strictObject({
  batch_size: z.int().min(1).max(queueLimits.consumerBatch).default(10),
});
const removed = <T extends z.ZodType>(each: T) => z.array(each).min(1).max(1000);

/** Messages without leasing them, each with its reference for `remove`. */
async function peek<R extends object>(
  call: Located & { body: z.output<typeof PeekSchema> },
  named: (ref: string) => R,
) {
  const messages = await call.services.queueMessages.peek(queueOf(call), call.body.batch_size);
  return messages.map((message) => ({ ...received(message), ...named(String(message.number)) }));
}

async function remove(call: Located, refs: readonly string[]): Promise<z.input<typeof warnings>> {
  const numbers = refs.filter((ref) => /^\d{1,15}$/.test(ref)).map(Number);
  const done = await call.services.queueMessages.remove(queueOf(call), numbers);
  const missing = refs.filter((ref) => !done.has(Number(ref)));
  return Object.fromEntries(missing.map((ref) => [ref, "there is no such message"]));
}

export const messageOperations = [
  operation({
    id: "queue_message_push",
    audit: "none",
    method: "POST",
    path: `${base}/messages`,
    summary: "Send a message",
    access: edit,
    body: MessageInputSchema,
    result: PushedSchema,
    handle: async (call) => push(call, [outgoing(call.body)]),
  }),
  operation({
    id: "queue_message_push_batch",
    audit: "none",
    method: "POST",
    path: `${base}/messages/batch`,
    summary: "Send several messages, all or none",
    access: edit,
    body: z.strictObject({
      messages: z.array(MessageInputSchema).min(1).max(queueLimits.batchMessages),
      delay_seconds: delay.optional(),
    }),
    result: PushedSchema,
    handle: async (call) => push(call, call.body.messages.map(outgoing), call.body.delay_seconds),
  }),
  operation({
    id: "queue_message_pull",
    audit: "none",
    method: "POST",
    path: `${base}/messages/pull`,
    summary: "Lease messages",
    access: edit,
    bodyOptional: true,
    body: z.strictObject({
      batch_size: z.int().min(1).max(queueLimits.consumerBatch).optional(),
      visibility_timeout_ms: z.int().min(1000).max(queueLimits.visibilityTimeoutMs).optional(),
    }),
    result: z.object({
      message_backlog_count: z.int(),
      messages: z.array(ReceivedSchema.extend({ lease_id: z.string() })),
      metadata: z.object({ metrics: MetricsSchema }),
    }),
    async handle(call) {
      const { queueMessages } = call.services;
      const queue = pulled(call);
      const { settings } = queue.consumer!;
      const { lease, messages } = await queueMessages.pull(
        queue,
        call.body.batch_size ?? settings.batchSize,
        call.body.visibility_timeout_ms ?? settings.visibilityTimeoutMs,
      );
      const backlog = await queueMessages.backlogEstimate(queue);
      return {
        message_backlog_count: backlog.count,
        messages: messages.map((message) => ({
          ...received(message),
          lease_id: leaseId(message.number, lease),
        })),
        metadata: { metrics: metrics(backlog) },
      };
    },
  }),
  operation({
    id: "queue_message_ack",
    audit: "none",
    method: "POST",
    path: `${base}/messages/ack`,
    summary: "Acknowledge leased messages, or return them for a retry",
    access: edit,
    body: z.strictObject({
      acks: z
        .array(z.strictObject({ lease_id: z.string() }))
        .max(leasesMax)
        .default([]),
      retries: z
        .array(z.strictObject({ lease_id: z.string(), delay_seconds: delay.optional() }))
        .max(leasesMax)
        .default([]),
    }),
    result: z.object({ ackCount: z.int(), retryCount: z.int(), warnings }),
    async handle(call) {
      const queue = pulled(call);
      const { retryDelay } = queue.consumer!.settings;
      return settle(
        call.services.queueMessages,
        queue,
        call.body.acks.map((ack) => ack.lease_id),
        new Map(call.body.retries.map((retry) => [retry.lease_id, retry.delay_seconds ?? retryDelay])),
      );
    },
  }),
  operation({
    id: "queue_message_extend",
    audit: "none",
    method: "POST",
    path: `${base}/messages/extend`,
    summary: "Extend the leases of messages",
    access: edit,
    body: z.strictObject({
      extend: z
        .array(z.strictObject({ lease_id: z.string() }))
        .min(1)
        .max(leasesMax),
      visibility_timeout_ms: z.int().min(1000).max(queueLimits.visibilityTimeoutMs).optional(),
    }),
    result: z.object({ extendCount: z.int(), warnings }),
    async handle(call) {
      const queue = pulled(call);
      const leaseMs = call.body.visibility_timeout_ms ?? queue.consumer!.settings.visibilityTimeoutMs;
      const failed: Record<string, string> = {};
      let extendCount = 0;
      const leases = byLease(
        call.body.extend.map((each) => each.lease_id),
        failed,
      );
      for (const [lease, ids] of leases) {
        const done = new Set(
          await call.services.queueMessages.extendPulled(queue, lease, leaseMs, [...ids.keys()]),
        );
        extendCount += done.size;
        for (const [number, id] of ids) if (!done.has(number)) failed[id] = ended;
      }
      return { extendCount, warnings: failed };
    },
  }),
  operation({
    id: "queue_message_peek",
    audit: "none",
    method: "POST",
    path: `${base}/messages/peek`,
    summary: "Preview messages without leasing them",
    access: read,
    bodyOptional: true,
    body: PeekSchema,
    result: z.object({ messages: z.array(ReceivedSchema.extend({ ref: z.string() })) }),
    handle: async (call) => ({ messages: await peek(call, (ref) => ({ ref })) }),
  }),
  operation({
    id: "queue_message_purge",
    method: "POST",
    path: `${base}/messages/purge`,
    summary: "Delete previewed messages",
    access: edit,
    body: z.strictObject({ refs: removed(z.strictObject({ ref: z.string() })) }),
    result: z.object({ errors: z.array(z.object({ message: z.string() })), warnings }),
    handle: async (call) => ({
      errors: [],
      warnings: await remove(
        call,
        call.body.refs.map(({ ref }) => ref),
      ),
    }),
  }),
  operation({
    id: "queue_message_preview",
    audit: "none",
    method: "POST",
    path: `${base}/messages/preview`,
    summary: "Preview messages without leasing them: the older name of peek",
    access: read,
    bodyOptional: true,
    body: PeekSchema,
    result: z.object({ messages: z.array(ReceivedSchema.extend({ lease_id: z.string() })) }),
    handle: async (call) => ({ messages: await peek(call, (ref) => ({ lease_id: ref })) }),
  }),
  operation({
    id: "queue_message_preview_ack",
    audit: "none",
    method: "POST",
    path: `${base}/messages/preview/ack`,
    summary: "Delete previewed messages: the older name of purge",
    access: edit,
    body: z.strictObject({
      acks: removed(z.strictObject({ lease_id: z.string() })),
      // Messages that are not leased cannot be returned.
      retries: z.array(z.unknown()).max(0).optional(),
    }),
    result: z.object({ warnings }),
    handle: async (call) => ({
      warnings: await remove(
        call,
        call.body.acks.map(({ lease_id }) => lease_id),
      ),
    }),
  }),
  operation({
    id: "queue_metrics",
    method: "GET",
    path: `${base}/metrics`,
    summary: "Get the number of messages in a queue",
    access: read,
    result: MetricsSchema,
    handle: async (call) => metrics(await call.services.queueMessages.backlog(queueOf(call))),
  }),
];

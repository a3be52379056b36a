import type { Logger } from "pino";
import { z } from "zod";
import { CellError, type CellErrorKind } from "../../../sandbox/errors.ts";
import { inSpan } from "../../../platform/tracing/spans/span.ts";
import type { Tracer } from "../../../platform/tracing/spans/tracer.ts";
import type { Runtime } from "../../../workers/runtime/runtime.ts";
import type { Scripts } from "../../../workers/scripts/scripts.ts";
import type { MessageBatchResult, Deliver } from "./dispatcher.ts";
import type { QueueMessages } from "../messages.ts";
import { queueLimits, type QueueMessage } from "../queue.ts";
import type { Backlog } from "../store-messages.ts";

/** Errors that are not the script's fault: the batch was not delivered. */
const blameless: ReadonlySet<CellErrorKind> = new Set(["overloaded", "unavailable"]);

const delaySeconds = z.int().min(0).max(queueLimits.delaySeconds).optional();
/** Validated because it comes from the script's isolate. */
const AnswerSchema = z.object({
  ackAll: z.boolean(),
  retryBatch: z.object({ retry: z.boolean(), delaySeconds }),
  explicitAcks: z.array(z.string()).max(queueLimits.consumerBatch),
  retryMessages: z.array(z.object({ msgId: z.string(), delaySeconds })).max(queueLimits.consumerBatch),
  error: z.object({ name: z.string(), message: z.string(), stack: z.string() }).optional(),
});

/** Runs the `queue` handler of the live version. */
export const deliverTo =
  (services: {
    scripts: Scripts;
    runtime: Runtime;
    queueMessages: QueueMessages;
    logger: Logger;
    tracer?: Tracer | undefined;
  }): Deliver =>
  async ({ queue, scriptName, messages }) => {
    const { scripts, runtime, queueMessages, logger, tracer } = services;
    const owner = { accountId: queue.accountId };
    const live = scripts.live(owner, scriptName);
    if (live === undefined) throw new Error("the script has no deployed version");
    const batch = JSON.stringify(wireBatch(queue.name, messages, await queueMessages.backlogEstimate(queue)));
    const log = { account: owner.accountId, script: scriptName, queue: queue.name };
    const sender = { context: queueMessages.senderOf(messages), isTrusted: false };
    try {
      const returned = await inSpan(
        tracer?.begin(`queue.process ${queue.name}`, "consumer", sender),
        async (span) => {
          span?.set("messaging.batch.message_count", messages.length);
          return runtime.invoke(owner, live, "queue", batch, undefined, span);
        },
      );
      const answer = AnswerSchema.safeParse(returned);
      if (!answer.success) return failed;
      const { error, ...result } = answer.data;
      if (error !== undefined) logger.warn({ ...log, err: error }, "a batch failed");
      return { ...result, hasFailed: error !== undefined };
    } catch (error) {
      if (!(error instanceof CellError) || blameless.has(error.kind)) throw error;
      logger.warn({ ...log, err: error }, "a batch failed");
      return failed;
    }
  };

const failed: MessageBatchResult = {
  hasFailed: true,
  ackAll: false,
  retryBatch: { retry: false },
  explicitAcks: [],
  retryMessages: [],
};

/** A batch in the format of worker/batch.ts: `bytes` in base64, everything else as text. */
export function wireBatch(queueName: string, messages: readonly QueueMessage[], backlog: Backlog): object {
  return {
    queue: queueName,
    metrics: {
      backlogCount: backlog.count,
      backlogBytes: backlog.bytes,
      oldestMessageTimestampMs: backlog.oldestOn,
    },
    messages: messages.map(({ id, sentOn, attempts, contentType, body }) => ({
      id,
      timestampMs: sentOn,
      attempts,
      contentType,
      body: Buffer.from(body).toString(contentType === "bytes" ? "base64" : "utf8"),
    })),
  };
}

import { z } from "zod";
import { readJson } from "../../control/api/body.ts";
import { callerError } from "../../control/api/errors.ts";
import { throwInScript, type BindingHandler } from "../../workers/binding.ts";
import { queueErrorCodes } from "./api-errors.ts";
import type { QueueMessages } from "./messages.ts";
import { queueErrors } from "./errors.ts";
import { contentTypes, queueLimits, type OutgoingMessage } from "./queue.ts";
import type { Queues } from "./queues.ts";

const delay = z.int().min(0).max(queueLimits.delaySeconds).optional();
const SendSchema = z.strictObject({
  messages: z
    .array(z.strictObject({ contentType: z.enum(contentTypes), body: z.string(), delaySeconds: delay }))
    .max(10 * queueLimits.batchMessages), // larger batches are refused elsewhere, with a clearer message
  delaySeconds: delay,
});
/** The largest batch, when JSON escapes each byte with six characters. */
const bodyBytesMax = queueLimits.batchBytes * 6 + 64 * 1024;

/** Serves the calls of a queue binding: send, and metrics. */
export const queueBinding =
  (queues: Queues, messages: QueueMessages): BindingHandler<"queue"> =>
  async ({ caller, binding, url, request, response, span }) => {
    try {
      const queue = queues.findByName(caller.accountId, binding.queue_name);
      if (queue === undefined) throw queueErrors.notFound(binding.queue_name);
      if (request.method === "POST" && url.pathname === "/messages") {
        const sent = await readJson(request, SendSchema, bodyBytesMax);
        await messages.send(
          queue,
          sent.messages.map(outgoing),
          sent.delaySeconds ?? binding.delivery_delay ?? queue.settings.deliveryDelay,
          span,
        );
      }
      const { count, bytes, oldestOn } = await messages.backlogEstimate(queue);
      const metrics = { backlogCount: count, backlogBytes: bytes, oldestMessageTimestampMs: oldestOn };
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(metrics));
    } catch (error) {
      const shown = callerError(error, queueErrorCodes);
      if (shown === undefined) throw error;
      throwInScript(response, { message: `Queue send failed: ${shown.message}` });
    }
  };

const outgoing = ({
  contentType,
  body,
  delaySeconds,
}: z.output<typeof SendSchema>["messages"][number]): OutgoingMessage => ({
  contentType,
  body: Buffer.from(body, contentType === "bytes" ? "base64" : "utf8"),
  delaySeconds,
});

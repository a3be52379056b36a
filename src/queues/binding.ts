import { z } from "zod";
import { readJson } from "../api/body.ts";
import { ApiError, ApiErrors } from "../api/errors.ts";
import { throwInScript, type BindingHandler } from "../runtime/binding.ts";
import type { QueueMessages } from "./messages.ts";
import { contentTypes, queueErrors, queueLimits, type OutgoingMessage } from "./queue.ts";
import type { Queues } from "./queues.ts";

const delay = z.int().min(0).max(queueLimits.delaySeconds).optional();
const SendSchema = z.strictObject({
  messages: z.array(
    z.strictObject({ contentType: z.enum(contentTypes), body: z.string(), delaySeconds: delay }),
  ),
  delaySeconds: delay,
});
/** A batch of the largest size where JSON writes each byte with six. */
const bodyBytesMax = queueLimits.batchBytes * 6 + 64 * 1024;

/** What a script does through a binding to a queue: it sends, and asks how much there is. */
export const queueBinding =
  (queues: Queues, messages: QueueMessages): BindingHandler<"queue"> =>
  async ({ caller, binding, url, request, response }) => {
    try {
      const queue = queues.findByName(caller.accountId, binding.queue_name);
      if (queue === undefined) throw queueErrors.notFound(binding.queue_name);
      if (request.method === "POST" && url.pathname === "/messages") {
        const sent = await readJson(request, SendSchema, bodyBytesMax);
        await messages.send(
          queue,
          sent.messages.map(outgoing),
          sent.delaySeconds ?? binding.delivery_delay ?? queue.settings.deliveryDelay,
        );
      }
      const { count, bytes, oldestOn } = await messages.backlogEstimate(queue);
      const metrics = { backlogCount: count, backlogBytes: bytes, oldestMessageTimestampMs: oldestOn };
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(metrics));
    } catch (error) {
      if (!(error instanceof ApiError || error instanceof ApiErrors)) throw error;
      throwInScript(response, { message: `Queue send failed: ${error.message}` });
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

import type { Message } from "./queue.ts";
import type { Backlog } from "./store-messages.ts";

/** A batch as worker/batch.ts reads it: `bytes` in base64, everything else as its text. */
export function wireBatch(queueName: string, messages: readonly Message[], backlog: Backlog): object {
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

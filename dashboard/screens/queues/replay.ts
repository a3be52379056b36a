import { perform } from "../../core/client.ts";
import { bodyOf, type Backlog, type PeekedMessage } from "./queue-types.ts";

const one = "/accounts/{account_id}/queues/{queue_id}";
const peekedMax = 100;
/** The API takes 256 KiB in one batch. A character has three bytes at most. */
const batchCharactersMax = 80_000;

/** Progress of a replay. */
export interface Replayed {
  moved: number;
  /** Messages that the API cannot send: bytes, and values that scripts have serialized. They stay. */
  kept: number;
  /** Messages at the beginning that were not moved. More than these in the queue are newer than the replay. */
  left: number;
}

interface Ends {
  account: string;
  /** The ids of the queues. */
  from: string;
  to: string;
}

/**
 * Sends the waiting messages of a queue to another one, and then removes them. A message whose removal fails is in both
 * queues. Messages that arrive meanwhile stay, so that a consumer that still fails does not keep it going for ever.
 */
export async function replay(
  { account, from, to }: Ends,
  onProgress: (progress: Replayed) => void,
): Promise<Replayed> {
  const source = { account_id: account, queue_id: from };
  const { result } = await perform<Backlog>({ op: `GET ${one}/metrics`, params: source });
  const progress: Replayed = { moved: 0, kept: 0, left: result.backlog_count };
  while (progress.moved < result.backlog_count) {
    const peeked = await perform<{ messages: PeekedMessage[] }>({
      op: `POST ${one}/messages/peek`,
      params: source,
      body: { batch_size: peekedMax },
    });
    const sendable = peeked.result.messages.filter(isSendable);
    progress.kept = peeked.result.messages.length - sendable.length;
    const batch = firstOf(sendable.slice(0, result.backlog_count - progress.moved));
    if (batch.length === 0) break;
    await perform({
      op: `POST ${one}/messages/batch`,
      params: { account_id: account, queue_id: to },
      body: { messages: batch.map(sent) },
    });
    await perform({
      op: `POST ${one}/messages/purge`,
      params: source,
      body: { refs: batch.map(({ ref }) => ({ ref })) },
    });
    progress.moved += batch.length;
    progress.left -= batch.length;
    onProgress({ ...progress });
  }
  return progress;
}

const typeOf = ({ metadata }: PeekedMessage): string => metadata["CF-Content-Type"] ?? "";
const isSendable = (message: PeekedMessage): boolean => ["json", "text"].includes(typeOf(message));

const sent = (message: PeekedMessage): object => ({
  body: typeOf(message) === "json" ? (JSON.parse(bodyOf(message)) as unknown) : message.body,
  content_type: typeOf(message),
});

/** As many of the first messages as one batch takes, and at least one. */
function firstOf(messages: readonly PeekedMessage[]): readonly PeekedMessage[] {
  let characters = 0;
  const end = messages.findIndex(({ body }, index) => {
    characters += body.length;
    return index > 0 && characters > batchCharactersMax;
  });
  return end < 0 ? messages : messages.slice(0, end);
}

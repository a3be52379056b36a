import type { Selectable } from "kysely";
import type { QueueMessagesTable } from "./tables.ts";
import type { Read, Write } from "../../platform/storage/storage.ts";
import type { ContentType, QueueMessage } from "./queue.ts";

export interface NewMessage {
  id: string;
  contentType: ContentType;
  body: Uint8Array;
  availableOn: number;
}

const toMessage = (row: Selectable<QueueMessagesTable>): QueueMessage => ({
  number: row.number,
  id: row.id,
  contentType: row.content_type as ContentType,
  body: row.body,
  attempts: row.attempts,
  sentOn: row.sent_on,
});

export async function insert(
  trx: Write,
  queueNumber: number,
  messages: readonly NewMessage[],
  sentOn: number,
): Promise<void> {
  await trx
    .insertInto("queue_messages")
    .values(
      messages.map(({ id, contentType, body, availableOn }) => ({
        queue_number: queueNumber,
        id,
        content_type: contentType,
        body,
        attempts: 0,
        available_on: availableOn,
        lease: null,
        sent_on: sentOn,
      })),
    )
    .execute();
}

/** When the next messages become available, soonest first. */
export async function upcoming(read: Read, queueNumber: number, limit: number): Promise<number[]> {
  const rows = await read
    .selectFrom("queue_messages")
    .select("available_on")
    .where("queue_number", "=", queueNumber)
    .orderBy("available_on")
    .orderBy("number")
    .limit(limit)
    .execute();
  return rows.map((row) => row.available_on);
}

/** Queues with available messages. */
export async function available(read: Read, now: number): Promise<number[]> {
  const rows = await read
    .selectFrom("queues")
    .select("queues.number")
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom("queue_messages")
          .select("queue_messages.number")
          .whereRef("queue_messages.queue_number", "=", "queues.number")
          .where("queue_messages.available_on", "<=", now),
      ),
    )
    .execute();
  return rows.map(({ number }) => number);
}

/** Leases available messages to one caller. Concurrent nodes get different messages. */
export async function claim(
  trx: Write,
  engine: "sqlite" | "postgres",
  claimed: { queueNumber: number; limit: number; lease: string; now: number; until: number },
): Promise<QueueMessage[]> {
  const rows = await trx
    .updateTable("queue_messages")
    .set((eb) => ({
      lease: claimed.lease,
      available_on: claimed.until,
      attempts: eb("attempts", "+", 1),
    }))
    .where("number", "in", (eb) => {
      const available = eb
        .selectFrom("queue_messages")
        .select("number")
        .where("queue_number", "=", claimed.queueNumber)
        .where("available_on", "<=", claimed.now)
        .orderBy("available_on")
        .orderBy("number")
        .limit(claimed.limit);
      return engine === "postgres" ? available.forUpdate().skipLocked() : available;
    })
    .returningAll()
    .execute();
  return rows.map(toMessage).sort((a, b) => a.number - b.number);
}

/** Messages with an expired lease and more than `attempts` deliveries. */
export async function exhausted(
  read: Read,
  queueNumber: number,
  attempts: number,
  now: number,
  limit: number,
): Promise<{ number: number; lease: string }[]> {
  const rows = await read
    .selectFrom("queue_messages")
    .select(["number", "lease"])
    .where("queue_number", "=", queueNumber)
    .where("lease", "is not", null)
    .where("available_on", "<=", now)
    .where("attempts", ">", attempts)
    .limit(limit)
    .execute();
  return rows.map(({ number, lease }) => ({ number, lease: lease! }));
}

/** Deliveries of each of these messages under this lease. */
export async function attemptsOf(
  read: Read,
  lease: string,
  numbers: readonly number[],
): Promise<Map<number, number>> {
  if (numbers.length === 0) return new Map();
  const rows = await read
    .selectFrom("queue_messages")
    .select(["number", "attempts"])
    .where("number", "in", numbers)
    .where("lease", "=", lease)
    .execute();
  return new Map(rows.map(({ number, attempts }) => [number, attempts]));
}

/** Changes the end of a lease. Returns the messages that were still under it. */
export async function extend(
  trx: Write,
  lease: string,
  until: number,
  numbers?: readonly number[],
): Promise<number[]> {
  const rows = await trx
    .updateTable("queue_messages")
    .set({ available_on: until })
    .where("lease", "=", lease)
    .$if(numbers !== undefined, (query) => query.where("number", "in", numbers!))
    .returning("number")
    .execute();
  return rows.map(({ number }) => number);
}

/** Deletes acknowledged messages. A message that is under another lease by now stays. */
export async function acknowledge(trx: Write, lease: string, numbers: readonly number[]): Promise<number[]> {
  if (numbers.length === 0) return [];
  const rows = await trx
    .deleteFrom("queue_messages")
    .where("number", "in", numbers)
    .where("lease", "=", lease)
    .returning("number")
    .execute();
  return rows.map(({ number }) => number);
}

/** Returns messages to the queue, available from a time on. Adds `attempts` to their count. */
export async function release(
  trx: Write,
  lease: string,
  numbers: readonly number[],
  availableOn: number,
  attempts = 0,
): Promise<number[]> {
  if (numbers.length === 0) return [];
  const rows = await trx
    .updateTable("queue_messages")
    .set((eb) => ({ lease: null, available_on: availableOn, attempts: eb("attempts", "+", attempts) }))
    .where("number", "in", numbers)
    .where("lease", "=", lease)
    .returning("number")
    .execute();
  return rows.map(({ number }) => number);
}

/** Moves messages to another queue as new ones. */
export async function move(
  trx: Write,
  lease: string,
  numbers: readonly number[],
  toQueueNumber: number,
  now: number,
): Promise<number[]> {
  if (numbers.length === 0) return [];
  const rows = await trx
    .updateTable("queue_messages")
    .set({ queue_number: toQueueNumber, lease: null, attempts: 0, available_on: now, sent_on: now })
    .where("number", "in", numbers)
    .where("lease", "=", lease)
    .returning("number")
    .execute();
  return rows.map(({ number }) => number);
}

/** Ends the leases of holders that no longer exist. */
export async function releaseLeases(trx: Write, prefix: string, now: number): Promise<void> {
  await trx
    .updateTable("queue_messages")
    .set({ lease: null, available_on: now })
    .where("lease", "like", `${prefix}%`)
    .execute();
}

export interface Backlog {
  count: number;
  bytes: number;
  /** 0 when there is none. */
  oldestOn: number;
}

/** The messages and the time of the oldest one, of each queue that has any. From an index alone. */
export async function backlogs(
  read: Read,
): Promise<{ queueNumber: number; count: number; oldestOn: number }[]> {
  const rows = await read
    .selectFrom("queue_messages")
    .select((eb) => ["queue_number", eb.fn.countAll<number>().as("count"), eb.fn.min("sent_on").as("oldest")])
    .groupBy("queue_number")
    .execute();
  return rows.map((row) => ({ queueNumber: row.queue_number, count: row.count, oldestOn: row.oldest }));
}

export async function backlog(read: Read, queueNumber: number): Promise<Backlog> {
  const row = await read
    .selectFrom("queue_messages")
    .where("queue_number", "=", queueNumber)
    .select((eb) => [
      eb.fn.countAll().as("count"),
      eb.fn.sum(eb.fn<number>("length", ["body"])).as("bytes"),
      eb.fn.min("sent_on").as("oldest"),
    ])
    .executeTakeFirstOrThrow();
  return { count: Number(row.count), bytes: Number(row.bytes ?? 0), oldestOn: row.oldest ?? 0 };
}

export async function peek(read: Read, queueNumber: number, limit: number): Promise<QueueMessage[]> {
  const rows = await read
    .selectFrom("queue_messages")
    .selectAll()
    .where("queue_number", "=", queueNumber)
    .orderBy("available_on")
    .orderBy("number")
    .limit(limit)
    .execute();
  return rows.map(toMessage);
}

export async function removeNumbers(
  trx: Write,
  queueNumber: number,
  numbers: readonly number[],
): Promise<number[]> {
  if (numbers.length === 0) return [];
  const rows = await trx
    .deleteFrom("queue_messages")
    .where("queue_number", "=", queueNumber)
    .where("number", "in", numbers)
    .returning("number")
    .execute();
  return rows.map(({ number }) => number);
}

export async function hasSentBefore(read: Read, queueNumber: number, sentBefore: number): Promise<boolean> {
  const row = await read
    .selectFrom("queue_messages")
    .select("number")
    .where("queue_number", "=", queueNumber)
    .where("sent_on", "<", sentBefore)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Deletes some messages sent before a time and returns their count. */
export async function removeSent(
  trx: Write,
  queueNumber: number,
  sentBefore: number,
  limit: number,
): Promise<number> {
  const { numDeletedRows } = await trx
    .deleteFrom("queue_messages")
    .where("number", "in", (eb) =>
      eb
        .selectFrom("queue_messages")
        .select("number")
        .where("queue_number", "=", queueNumber)
        .where("sent_on", "<", sentBefore)
        .limit(limit),
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}

import type { Read, Write } from "../../platform/storage/storage.ts";
import type { Consumer, ConsumerSettings, Queue, QueueSettings } from "./queue.ts";

export async function loadAll(read: Read): Promise<Queue[]> {
  const [queues, consumers] = await Promise.all([
    read.selectFrom("queues").selectAll().orderBy("name").execute(),
    read.selectFrom("queue_consumers").selectAll().execute(),
  ]);
  const byQueue = new Map(
    consumers.map((row): [number, Consumer] => [
      row.queue_number,
      {
        id: row.id,
        type: row.type as Consumer["type"],
        scriptName: row.script_name,
        deadLetterQueue: row.dead_letter_queue,
        settings: JSON.parse(row.settings) as ConsumerSettings,
        createdOn: row.created_on,
      },
    ]),
  );
  return queues.map((row) => ({
    number: row.number,
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    settings: JSON.parse(row.settings) as QueueSettings,
    consumer: byQueue.get(row.number),
    createdOn: row.created_on,
    modifiedOn: row.modified_on,
  }));
}

export async function insert(
  trx: Write,
  queue: Pick<Queue, "id" | "accountId" | "name" | "settings" | "createdOn">,
): Promise<void> {
  await trx
    .insertInto("queues")
    .values({
      id: queue.id,
      account_id: queue.accountId,
      name: queue.name,
      settings: JSON.stringify(queue.settings),
      created_on: queue.createdOn,
      modified_on: queue.createdOn,
    })
    .execute();
}

export async function update(
  trx: Write,
  queue: Pick<Queue, "id" | "name" | "settings" | "modifiedOn">,
): Promise<void> {
  await trx
    .updateTable("queues")
    .set({ name: queue.name, settings: JSON.stringify(queue.settings), modified_on: queue.modifiedOn })
    .where("id", "=", queue.id)
    .execute();
}

export async function remove(trx: Write, id: string): Promise<void> {
  await trx.deleteFrom("queues").where("id", "=", id).execute();
}

export async function putConsumer(trx: Write, queueNumber: number, consumer: Consumer): Promise<void> {
  const columns = {
    type: consumer.type,
    script_name: consumer.scriptName,
    dead_letter_queue: consumer.deadLetterQueue,
    settings: JSON.stringify(consumer.settings),
  };
  await trx
    .insertInto("queue_consumers")
    .values({ id: consumer.id, queue_number: queueNumber, created_on: consumer.createdOn, ...columns })
    .onConflict((conflict) => conflict.column("id").doUpdateSet(columns))
    .execute();
}

export async function removeConsumer(trx: Write, id: string): Promise<void> {
  await trx.deleteFrom("queue_consumers").where("id", "=", id).execute();
}

/** Removes the consumers with a script and returns the ids of their queues. */
export async function removeConsumersOf(
  trx: Write,
  accountId: string,
  scriptName: string,
): Promise<string[]> {
  const consumers = await trx
    .selectFrom("queue_consumers")
    .innerJoin("queues", "queues.number", "queue_consumers.queue_number")
    .select(["queue_consumers.id", "queues.id as queue_id"])
    .where("queues.account_id", "=", accountId)
    .where("queue_consumers.script_name", "=", scriptName)
    .execute();
  for (const { id } of consumers) await removeConsumer(trx, id);
  return consumers.map(({ queue_id }) => queue_id);
}

import { z } from "zod";
import { objectsIn, pagesOf } from "../account/lists.ts";
import { path } from "../account/path.ts";
import type { MigratedAccount } from "../account/account.ts";
import { product } from "../product.ts";

const queuesOf = async ({ client, accountId }: MigratedAccount): Promise<Record<string, unknown>[]> =>
  pagesOf(client, path`/accounts/${accountId}/queues`, 100);

/** Queues and their settings. Messages stay where they are. */
export const queue = product({
  name: "queue",
  group: "queues",
  scope: "account",
  schema: z.object({
    name: z.string().min(1).max(63),
    settings: z.object({
      delivery_delay: z.number().default(0),
      delivery_paused: z.boolean().default(false),
      message_retention_period: z.number().default(345_600),
    }),
  }),
  key: ({ name }) => name,
  async *read({ account, leaveOut }) {
    const all = await queuesOf(account);
    for (const { queue_id, queue_name, settings } of all)
      yield { id: String(queue_id), value: { name: queue_name, settings: settings ?? {} } };
    leaveOut(
      all.map(({ queue_name }) => String(queue_name)),
      "messages: let the consumers empty the queues before the change",
      "queue_messages",
    );
  },
  async write({ account }, { name, settings }, before) {
    const all = path`/accounts/${account.accountId}/queues`;
    if (before === undefined) await account.client.send("POST", all, { queue_name: name, settings });
    else await account.client.send("PATCH", all + path`/${before.id ?? ""}`, { settings });
    account.forget("queue");
  },
  async remove({ account }, { id }) {
    await account.client.send("DELETE", path`/accounts/${account.accountId}/queues/${id ?? ""}`);
    account.forget("queue");
  },
});

const consumerSettings = z.object({
  batch_size: z.number().optional(),
  max_retries: z.number().optional(),
  retry_delay: z.number().optional(),
  max_wait_time_ms: z.number().optional(),
  max_concurrency: z.number().nullable().optional(),
  visibility_timeout_ms: z.number().optional(),
});

/** The scripts that receive a queue's messages, and its permission to pull. */
export const queueConsumer = product({
  name: "queue_consumer",
  group: "queues",
  scope: "account",
  schema: z.object({
    queue: z.string().min(1).max(63),
    type: z.string().max(32),
    script: z.string().max(255).nullable(),
    dead_letter_queue: z.string().max(63).default(""),
    settings: consumerSettings,
  }),
  key: ({ queue, type, script }) => [queue, type, script ?? ""].join(" ").trim(),
  async *read({ account }) {
    for (const { queue_id, queue_name } of await queuesOf(account)) {
      const of = path`/accounts/${account.accountId}/queues/${String(queue_id)}/consumers`;
      for (const each of objectsIn((await account.client.get(of)).result)) {
        const { consumer_id, type, script_name, script, dead_letter_queue, settings } = each;
        const value = {
          queue: queue_name,
          type,
          script: script_name ?? script ?? null,
          dead_letter_queue: dead_letter_queue ?? "",
          settings: settings ?? {},
        };
        yield { id: `${String(queue_id)}/${String(consumer_id)}`, value };
      }
    }
  },
  async write({ account }, { queue, type, script, dead_letter_queue, settings }, before) {
    const id = await account.idOf("queue", queue);
    const all = path`/accounts/${account.accountId}/queues/${id}/consumers`;
    const body = {
      type,
      ...(script === null ? {} : { script_name: script }),
      ...(dead_letter_queue === "" && before === undefined ? {} : { dead_letter_queue }),
      settings,
    };
    if (before === undefined) await account.client.send("POST", all, body);
    else await account.client.send("PUT", all + path`/${consumerIdIn(before.id)}`, body);
  },
  async remove({ account }, { id, value: { queue } }) {
    const queueId = await account.idOf("queue", queue);
    const of = path`/accounts/${account.accountId}/queues/${queueId}/consumers/${consumerIdIn(id)}`;
    await account.client.send("DELETE", of);
  },
});

const consumerIdIn = (id: string | undefined): string => id?.split("/").at(-1) ?? "";

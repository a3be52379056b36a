import { ConflictError, NotFoundError, type Cloudflare } from "cloudflare";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { operations } from "../../src/capabilities.ts";
import { queueOperations } from "../../src/products/queues/api.ts";
import { recordingClient } from "../helpers/recording-client.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";

/** The official client manages queues, sends, pulls and acknowledges, and parses every response. */
let server: TestServer;
let client: Cloudflare;
let called: Set<string>;
let account_id: string;

beforeAll(async () => {
  server = await startTestServer();
  ({ client, called } = recordingClient(server, operations));
  ({ account_id } = server.ready);
  const module = new File(["export default { queue() {} }"], "main.js", {
    type: "application/javascript+module",
  });
  await client.workers.scripts.update("consumer", {
    account_id,
    metadata: { main_module: "main.js" },
    files: [module],
  });
});
afterAll(() => server.close(1000));

const create = async (queue_name: string): Promise<string> =>
  (await client.queues.create({ account_id, queue_name })).queue_id!;

it("creates, lists, changes and deletes queues", async () => {
  const made = await client.queues.create({ account_id, queue_name: "orders" });
  const settings = { delivery_delay: 0, delivery_paused: false, message_retention_period: 345_600 };
  expect(made).toMatchObject({ queue_name: "orders", settings, consumers: [], producers_total_count: 0 });
  const id = made.queue_id!;
  expect(await client.queues.get(id, { account_id })).toEqual(made);
  expect((await Array.fromAsync(client.queues.list({ account_id }))).map((each) => each.queue_id)).toContain(
    id,
  );
  await expect(client.queues.create({ account_id, queue_name: "orders" })).rejects.toThrow(ConflictError);
  const edited = await client.queues.edit(id, { account_id, settings: { delivery_delay: 5 } });
  expect(edited.settings).toEqual({ ...settings, delivery_delay: 5 });
  const updated = await client.queues.update(id, { account_id, queue_name: "renamed" });
  expect(updated).toMatchObject({ queue_id: id, queue_name: "renamed", settings });
  // Clients can send back the fields that they read.
  expect(await client.queues.update(id, { account_id, ...updated })).toMatchObject({ queue_name: "renamed" });
  await client.queues.delete(id, { account_id });
  await expect(client.queues.get(id, { account_id })).rejects.toThrow(NotFoundError);
});

it("manages the consumer of a queue", async () => {
  const id = await create("consumed");
  await create("letters");
  const { consumers } = client.queues;
  const made = await consumers.create(id, {
    account_id,
    type: "worker",
    script_name: "consumer",
    dead_letter_queue: "letters",
    settings: { batch_size: 5 },
  });
  expect(made).toMatchObject({
    script_name: "consumer",
    dead_letter_queue: "letters",
    settings: { batch_size: 5, max_retries: 3, max_wait_time_ms: 5000, max_concurrency: null },
  });
  const scope = { account_id, queue_id: id };
  expect(await consumers.get(made.consumer_id!, scope)).toEqual(made);
  const updated = await consumers.update(made.consumer_id!, {
    ...scope,
    type: "worker",
    script_name: "consumer",
    settings: { max_retries: 1 },
  });
  expect(updated).toMatchObject({ dead_letter_queue: "", settings: { batch_size: 10, max_retries: 1 } });
  expect(await Array.fromAsync(consumers.list(id, { account_id }))).toEqual([updated]);
  // Clients can send back the fields that they read.
  expect(await consumers.update(made.consumer_id!, { ...scope, ...updated } as never)).toEqual(updated);
  await expect(consumers.create(id, { account_id, type: "http_pull" })).rejects.toThrow(ConflictError);
  await consumers.delete(made.consumer_id!, scope);
  expect(await Array.fromAsync(consumers.list(id, { account_id }))).toEqual([]);
  await expect(
    consumers.create(id, { account_id, type: "worker", script_name: "nobody" }),
  ).rejects.toMatchObject({ status: 404, errors: [{ code: 10007 }] });
});

it("deletes the consumer with its script", async () => {
  const id = await create("orphaned");
  const files = [new File(["export default { queue() {} }"], "main.js", { type: "text/javascript+module" })];
  await client.workers.scripts.update("gone", { account_id, metadata: { main_module: "main.js" }, files });
  await client.queues.consumers.create(id, { account_id, type: "worker", script_name: "gone" });
  await client.workers.scripts.delete("gone", { account_id });
  expect(await client.queues.get(id, { account_id })).toMatchObject({ consumers: [] });
});

it("sends, pulls, acknowledges, extends and returns messages", async () => {
  const id = await create("pulled");
  const { messages } = client.queues;
  await expect(messages.pull(id, { account_id })).rejects.toMatchObject({ status: 405 });
  const pulls = { max_retries: 5, retry_delay: 0 };
  await client.queues.consumers.create(id, { account_id, type: "http_pull", settings: pulls });
  await messages.push(id, { account_id, body: "plain", content_type: "text" });
  await messages.bulkPush(id, {
    account_id,
    messages: [
      { body: { n: 1 }, content_type: "json" },
      { body: "later", content_type: "text", delay_seconds: 600 },
    ],
  });
  expect(await client.queues.getMetrics(id, { account_id })).toMatchObject({ backlog_count: 3 });
  const { messages: peeked } = await messages.peek(id, { account_id });
  expect(peeked!.map((each) => each.attempts)).toEqual([0, 0, 0]);

  const pulled = await messages.pull(id, { account_id, batch_size: 10, visibility_timeout_ms: 60_000 });
  expect(pulled.messages).toMatchObject([
    { body: "plain", attempts: 1, metadata: { "CF-Content-Type": "text" } },
    { body: btoa('{"n":1}'), attempts: 1, metadata: { "CF-Content-Type": "json" } },
  ]);
  const [first, second] = pulled.messages!.map(({ lease_id }) => ({ lease_id: lease_id! }));
  const path = `/accounts/${account_id}/queues/${id}/messages/extend`;
  const extended = await server.call("POST", path, { extend: [first], visibility_timeout_ms: 60_000 });
  expect(extended.body.result).toEqual({ extendCount: 1, warnings: {} });
  called.add("queue_message_extend"); // the client has no method for it

  const settled = await messages.ack(id, { account_id, acks: [first!], retries: [second!] });
  expect(settled).toEqual({ ackCount: 1, retryCount: 1, warnings: {} });
  const again = await messages.ack(id, { account_id, acks: [first!, { lease_id: "nonsense" }] });
  expect(again).toMatchObject({
    ackCount: 0,
    warnings: { [first!.lease_id]: /ended|./, nonsense: /not a lease/ },
  });
  const { messages: back } = await messages.pull(id, { account_id });
  expect(back).toMatchObject([{ attempts: 2 }]);
});

it("moves pulled messages to the dead letter queue once their retries are used up", async () => {
  const letters = await create("pulled-letters");
  const { messages, consumers } = client.queues;
  await consumers.create(letters, { account_id, type: "http_pull" });
  const id = await create("pulled-once");
  const pulls = { max_retries: 1, retry_delay: 0 };
  const dead_letter_queue = "pulled-letters";
  await consumers.create(id, { account_id, type: "http_pull", dead_letter_queue, settings: pulls });
  for (const body of ["given back", "forgotten"])
    await messages.push(id, { account_id, body, content_type: "text" });
  const pull = async (visibility_timeout_ms: number) =>
    (await messages.pull(id, { account_id, batch_size: 10, visibility_timeout_ms })).messages!;
  const again = (await pull(60_000)).map(({ lease_id }) => ({ lease_id: lease_id! }));
  expect(await messages.ack(id, { account_id, retries: again })).toMatchObject({ retryCount: 2 });
  const last = await pull(1000);
  expect(last.map(({ body, attempts }) => [body, attempts])).toEqual([
    ["given back", 2],
    ["forgotten", 2],
  ]);
  await messages.ack(id, { account_id, retries: [{ lease_id: last[0]!.lease_id! }] });
  const backlog = async (queue: string) =>
    (await client.queues.getMetrics(queue, { account_id })).backlog_count;
  expect([await backlog(id), await backlog(letters)]).toEqual([1, 1]);
  await vi.waitFor(async () => expect(await backlog(id)).toBe(0), { interval: 50 });
  const { messages: dead } = await messages.pull(letters, { account_id, batch_size: 10 });
  expect(dead!.map(({ body, attempts }) => [body, attempts])).toEqual([
    ["given back", 1],
    ["forgotten", 1],
  ]);
});

it("names the missing field of a message", async () => {
  const id = await create("lacking");
  const refused = await server.call("POST", `/accounts/${account_id}/queues/${id}/messages`, {});
  expect(refused.body.errors).toMatchObject([
    { code: 9207, message: "Expected any JSON value for body, which is required" },
  ]);
});

it("deletes messages", async () => {
  const id = await create("purged");
  const { messages, purge } = client.queues;
  for (const body of ["a", "b", "c"]) await messages.push(id, { account_id, body, content_type: "text" });
  const { messages: peeked } = await messages.peek(id, { account_id, batch_size: 1 });
  await messages.purge(id, { account_id, refs: [{ ref: peeked![0]!.ref! }] });
  expect(await client.queues.getMetrics(id, { account_id })).toMatchObject({ backlog_count: 2 });
  expect(await purge.status(id, { account_id })).toEqual({ started_at: "", completed: "" });
  await expect(purge.start(id, { account_id, delete_messages_permanently: false })).rejects.toThrow(
    "Expected true",
  );
  await purge.start(id, { account_id, delete_messages_permanently: true });
  expect(await purge.status(id, { account_id })).toMatchObject({ completed: "true" });
  expect(await client.queues.getMetrics(id, { account_id })).toEqual({
    backlog_count: 0,
    backlog_bytes: 0,
    oldest_message_timestamp_ms: 0,
  });
});

it("previews and deletes messages through the older paths too", async () => {
  const id = await create("previewed");
  for (const body of ["a", "b"])
    await client.queues.messages.push(id, { account_id, body, content_type: "text" });
  // The client has no methods for these.
  const path = `/accounts/${account_id}/queues/${id}/messages/preview`;
  const { body: seen } = await server.call("POST", path, { batch_size: 1 });
  expect(seen.result.messages).toMatchObject([{ body: "a", attempts: 0 }]);
  const acks = [{ lease_id: seen.result.messages[0].lease_id as string }];
  const acknowledged = await server.call("POST", `${path}/ack`, { acks });
  expect(acknowledged.body.result).toEqual({ warnings: {} });
  expect(await client.queues.getMetrics(id, { account_id })).toMatchObject({ backlog_count: 1 });
  const again = await server.call("POST", `${path}/ack`, { acks: [...acks, { lease_id: "nonsense" }] });
  expect(Object.keys(again.body.result.warnings as object)).toEqual([acks[0]!.lease_id, "nonsense"]);
  expect((await server.call("POST", `${path}/ack`, { acks, retries: acks })).status).toBe(400);
  called.add("queue_message_preview").add("queue_message_preview_ack");
});

it("reports that there are no event subscriptions, and names rejected fields", async () => {
  const { subscriptions } = client.queues;
  const queue_id = await create("subscribed");
  expect(await Array.fromAsync(subscriptions.list({ account_id }))).toEqual([]);
  const asked = {
    name: "made",
    enabled: true,
    events: ["namespace.created"],
    source: { type: "kv" as const },
    destination: { type: "queues.queue" as const, queue_id },
  };
  await expect(subscriptions.create({ account_id, ...asked })).rejects.toThrow(
    'nothing here sends events of \\"kv\\"',
  );
  for (const method of ["get", "update", "delete"] as const)
    await expect(subscriptions[method]("0".repeat(32), { account_id })).rejects.toThrow(NotFoundError);
});

it("every operation has been called", () => {
  expect(queueOperations.map(({ id }) => id).filter((id) => !called.has(id))).toEqual([]);
});

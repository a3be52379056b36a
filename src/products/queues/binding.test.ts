import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Accounts } from "../../control/accounts/accounts.ts";
import { openStorage, type Storage } from "../../platform/storage/storage.ts";
import { queueBinding } from "./binding.ts";
import { wireBatch } from "./delivery/delivery.ts";
import { QueueMessages } from "./messages.ts";
import type { Queue } from "./queue.ts";
import { Queues } from "./queues.ts";

/**
 * Sends messages through the binding to a `queue` handler: both ends of the worker side, with the host in
 * between.
 */
interface Sender {
  send(body: unknown, options?: object): Promise<{ metadata: { metrics: { backlogCount: number } } }>;
  sendBatch(messages: Iterable<object>, options?: object): Promise<unknown>;
  metrics(): Promise<{ backlogCount: number }>;
}
interface Received {
  id: string;
  body: unknown;
  attempts: number;
  timestamp: Date;
  ack(): void;
  retry(options?: object): void;
}
interface Opened {
  event: { queue: string; messages: Received[]; ackAll(): void; retryAll(options?: object): void };
  outcome(): object;
  failure(error: unknown): object;
}
/** The worker side has workerd's types. */
const workerSide = async (file: string): Promise<Record<string, (...args: unknown[]) => unknown>> =>
  import(new URL(`worker/${file}`, import.meta.url).href) as never;

let storage: Storage;
let server: Server;
let messages: QueueMessages;
let queue: Queue;
let sender: Sender;
let open: (wire: object) => Opened;

beforeAll(async () => {
  storage = await openStorage("sqlite::memory:");
  const accounts = new Accounts(storage);
  const user = await accounts.createUser({ email: "owner@example.com", apiKeyHash: null });
  const { id: accountId } = await accounts.create({ name: "a", type: "enterprise", ownerUserId: user.id });
  const queues = new Queues(storage, { find: () => undefined, onDelete: () => {}, lock: async () => {} });
  messages = new QueueMessages(storage, queues);
  queue = await queues.create(accountId, "jobs");
  const handler = queueBinding(queues, messages);
  const caller = { accountId, scriptId: "s", scriptName: "producer", versionId: "v" };
  const binding = { type: "queue", name: "JOBS", queue_name: "jobs" } as const;
  server = createServer((request, response) => {
    const url = new URL(request.url!, "http://binding");
    void handler({ caller, binding, url, request, response });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const call = async (path: string, init?: RequestInit): Promise<Response> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
    const refusal = response.headers.get("x-selvedge-error");
    if (refusal !== null) throw new Error(decodeURIComponent(refusal));
    return response;
  };
  sender = (await workerSide("binding.ts"))["queueBinding"]!(call) as Sender;
  open = (await workerSide("../../../workers/runtime/worker/batch.ts"))["queueEvent"] as (
    wire: object,
  ) => Opened;
});
afterAll(async () => {
  server.close();
  await storage.close();
});

async function receive(): Promise<Opened> {
  const { lease, messages: claimed } = await messages.claim(queue, 100, 60_000);
  const wire = wireBatch("jobs", claimed, await messages.backlog(queue));
  await messages.settle(queue, lease, { acks: claimed.map(({ number }) => number), retries: [] });
  return open(JSON.parse(JSON.stringify(wire)) as object);
}
const bodies = async (): Promise<unknown[]> => (await receive()).event.messages.map(({ body }) => body);

const circular: Record<string, unknown> = { name: "self", list: [1, [2]] };
circular["self"] = circular;
it.each<[string, unknown]>([
  ["text", "grüße\u0000"],
  ["json", { a: [1, null, "b"], c: { d: true } }],
  ["bytes", new Uint8Array([0, 255, 128])],
  [
    "v8",
    new Map<unknown, unknown>([
      ["a", new Set([1n, undefined])],
      [{ k: 1 }, new Date(5)],
    ]),
  ],
  ["v8", [Number.NaN, -0, Number.POSITIVE_INFINITY, undefined, null, /a"b/giu, new Date(Number.NaN)]],
  ["v8", circular],
  ["v8", { view: new Uint16Array([1, 2, 3]).subarray(1), buffer: new Uint8Array([7]).buffer }],
  ["v8", Object.fromEntries([["__proto__", 1]])],
  ["v8", new RangeError("beyond", { cause: { n: 1 } })],
])("carries %s: %j", async (contentType, body) => {
  await sender.send(body, { contentType });
  const [received] = await bodies();
  expect(received).toEqual(body);
  if (body instanceof Error) expect(received).toBeInstanceOf(RangeError);
});

it("sends batches, with a delay for all or for one", async () => {
  const { metadata } = await sender.send("first");
  // An estimate, which is recounted when that is cheap.
  expect(metadata.metrics.backlogCount).toEqual(expect.any(Number));
  await sender.sendBatch(new Set([{ body: "now" }, { body: "later", delaySeconds: 60 }]));
  await sender.sendBatch([{ body: "later still" }], { delaySeconds: 60 });
  expect(new Set(await bodies())).toEqual(new Set(["first", "now"]));
  expect((await messages.backlog(queue)).count).toBe(2);
  await messages.purge(queue);
});

it.each<[string, () => Promise<unknown>, RegExp]>([
  ["a body over the limit", () => sender.send("x".repeat(128 * 1024)), /at most 131072 bytes in a message/],
  ["no messages", () => sender.sendBatch([]), /1 to 100 messages but received 0/],
  [
    "a batch over the limit",
    () => sender.sendBatch([1, 2, 3].map(() => ({ body: "x".repeat(100_000) }))),
    /262144 bytes in a batch/,
  ],
  ["a delay of more than a day", () => sender.send(1, { delaySeconds: 86_401 }), /at most 86400/],
  [
    "a value that is not JSON-serializable",
    () => sender.send(undefined),
    /JSON-serializable value but received undefined/,
  ],
  [
    "a value that cannot be cloned",
    () => sender.send(() => {}, { contentType: "v8" }),
    /could not be cloned/,
  ],
  [
    "text that is not a string",
    () => sender.send(1, { contentType: "text" }),
    /a string .* but received number/,
  ],
  ["bytes that are not a buffer", () => sender.send("a", { contentType: "bytes" }), /ArrayBuffer/],
  ["an unknown type", () => sender.send(1, { contentType: "xml" }), /text, bytes, json, v8/],
])("refuses %s", async (_what, send, message) => {
  await expect(send()).rejects.toThrow(message);
  expect((await messages.backlog(queue)).count).toBe(0);
});

it("the first decision about a message or a batch counts", async () => {
  await sender.sendBatch([{ body: 1 }, { body: 2 }, { body: 3 }]);
  const received = await receive();
  const { event } = received;
  const [a, b] = event.messages as [Received, Received, Received];
  a.ack();
  a.retry();
  b.retry({ delaySeconds: 5 });
  b.ack();
  event.retryAll({ delaySeconds: 9 });
  event.ackAll();
  expect(() => event.retryAll({ delaySeconds: -1 })).toThrow("delaySeconds but received -1");
  const result = {
    ackAll: false,
    retryBatch: { retry: true, delaySeconds: 9 },
    explicitAcks: [a.id],
    retryMessages: [{ msgId: b.id, delaySeconds: 5 }],
  };
  expect(received.outcome()).toEqual(result);
  expect(received.failure(new TypeError("no"))).toMatchObject({
    ...result,
    error: { name: "TypeError", message: "no" },
  });
  expect([event.queue, a.attempts, a.timestamp instanceof Date]).toEqual(["jobs", 1, true]);
});

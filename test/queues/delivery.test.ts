import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { ownerToken } from "../helpers/server.ts";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/** Scripts send to and consume from queues, through the edge and real cells. */
let server: Hosting;
let account: string;

beforeAll(async () => {
  server = await startHosting({ scriptCpuMs: 300 });
  account = `/accounts/${server.account}`;
});
afterAll(() => server.close(1000));

/** Sends the messages of the request, and writes consumed messages to a key-value namespace. */
const code = `
const kinds = (body) => body instanceof Map ? "map" : body instanceof Uint8Array ? "bytes" : typeof body;
export default {
  async fetch(request, env) {
    const calls = JSON.parse(new URL(request.url).searchParams.get("calls"));
    const answers = [];
    for (const [method, ...args] of calls) {
      try { answers.push(await env.JOBS[method](...args)); }
      catch (error) { answers.push({ name: error.name, message: error.message }); }
    }
    return Response.json(answers);
  },
  async queue(batch, env, ctx) {
    const { messages, queue } = batch;
    await env.KV.put(crypto.randomUUID(), JSON.stringify({
      queue, messages: messages.map(({ id, body, attempts, timestamp }) => ({
        id, attempts, body, kind: kinds(body), recent: Math.abs(Date.now() - timestamp) < 3600_000,
      })),
    }));
    if (messages.some(({ body }) => body?.act === "loop")) for (;;);
    for (const message of messages) {
      if (message.body?.act === "retry" && message.attempts < 3) message.retry();
      if (message.body?.act === "ack") message.ack();
    }
    if (messages.some(({ body }) => body?.act === "throw")) throw new TypeError("no thanks");
  },
};`;

interface Taken {
  queue: string;
  messages: { body: { act?: string; n?: number } | string; attempts: number; kind: string }[];
}
interface World {
  send: (...calls: unknown[][]) => Promise<unknown[]>;
  taken: () => Promise<Taken[]>;
  queueId: string;
}

async function world(name: string, consumer: object = {}, deadLetters?: string): Promise<World> {
  const { id: namespace } = (
    await server.call("POST", `${account}/storage/kv/namespaces`, { title: `taken by ${name}` })
  ).body.result as { id: string };
  const queue = await server.call("POST", `${account}/queues`, { queue_name: name });
  const queueId = (queue.body.result as { queue_id: string }).queue_id;
  await server.deploy(name, {
    code,
    bindings: [
      { type: "queue", name: "JOBS", queue_name: name },
      { type: "kv_namespace", name: "KV", namespace_id: namespace },
    ],
  });
  const made = await server.call("POST", `${account}/queues/${queueId}/consumers`, {
    type: "worker",
    script_name: name,
    ...(deadLetters === undefined ? {} : { dead_letter_queue: deadLetters }),
    settings: { max_wait_time_ms: 0, ...consumer },
  });
  expect(made.body.errors).toEqual([]);
  return {
    queueId,
    async send(...calls) {
      const { body } = await server.ask(name, `/?calls=${encodeURIComponent(JSON.stringify(calls))}`);
      return JSON.parse(body) as unknown[];
    },
    async taken() {
      const keys = await server.call("GET", `${account}/storage/kv/namespaces/${namespace}/keys`);
      return Promise.all(
        (keys.body.result as { name: string }[]).map(async (key) => {
          const path = `${server.ready.api}${account}/storage/kv/namespaces/${namespace}/values/${key.name}`;
          const response = await fetch(path, { headers: { authorization: `Bearer ${ownerToken}` } });
          return (await response.json()) as Taken;
        }),
      );
    },
  };
}
const isEmpty = async (queueId: string): Promise<void> =>
  vi.waitFor(
    async () => {
      const { body } = await server.call("GET", `${account}/queues/${queueId}/metrics`);
      expect(body.result).toMatchObject({ backlog_count: 0 });
    },
    { interval: 20 },
  );

it("carries every kind of message from one script to another", async () => {
  const { send, taken, queueId } = await world("kinds");
  const answers = await send(
    ["send", { n: 1 }],
    ["send", "text", { contentType: "text" }],
    ["sendBatch", [{ body: { n: 2 } }, { body: { n: 3 }, contentType: "v8" }]],
    ["send", 5, { contentType: "text" }],
    ["metrics"],
  );
  expect(answers).toMatchObject([
    { metadata: { metrics: { backlogCount: expect.any(Number) } } },
    { metadata: {} },
    { metadata: {} },
    { name: "TypeError", message: expect.stringContaining("received number") },
    { backlogCount: expect.any(Number) },
  ]);
  await isEmpty(queueId);
  const messages = (await taken()).flatMap((batch) => batch.messages);
  expect(messages.map(({ body }) => JSON.stringify(body)).toSorted()).toEqual(
    [{ n: 1 }, { n: 2 }, { n: 3 }, "text"].map((body) => JSON.stringify(body)).toSorted(),
  );
  expect(messages).toMatchObject(messages.map(() => ({ attempts: 1, recent: true })));
  const { body } = await server.call("GET", `${account}/queues/${queueId}`);
  expect(body.result).toMatchObject({ producers: [{ type: "worker", script: "kinds" }] });
});

it("a script with an old compatibility date sends structured-cloneable values", async () => {
  const { queueId } = await world("old");
  await server.deploy("sender", {
    code: `export default { async fetch(request, env) {
      await env.JOBS.send({ act: "none", n: new Map([[1, new Date(0)]]) });
      return new Response(JSON.stringify(Object.keys(env)));
    } };`,
    bindings: [{ type: "queue", name: "JOBS", queue_name: "old" }],
    metadata: { compatibility_date: "2023-05-01" },
  });
  await server.call("PUT", `${account}/queues/${queueId}`, { settings: { delivery_paused: true } });
  expect((await server.ask("sender")).status).toBe(200);
  const { body } = await server.call("POST", `${account}/queues/${queueId}/messages/peek`, {});
  expect(body.result.messages).toMatchObject([{ metadata: { "CF-Content-Type": "v8" } }]);
});

it("retries only the messages that the script returns", async () => {
  const { send, taken, queueId } = await world("again", { batch_size: 2 });
  await send(["sendBatch", [{ body: { act: "retry", n: 1 } }, { body: { n: 2 } }]]);
  await isEmpty(queueId);
  const attempts = (await taken()).flatMap(({ messages }) => messages);
  expect(attempts.map(({ body, attempts }) => `${JSON.stringify(body)} ${attempts}`).toSorted()).toEqual([
    '{"act":"retry","n":1} 1',
    '{"act":"retry","n":1} 2',
    '{"act":"retry","n":1} 3',
    '{"n":2} 1',
  ]);
});

it("failed messages go to the dead letter queue; acknowledged ones do not", async () => {
  const letters = await server.call("POST", `${account}/queues`, { queue_name: "letters" });
  const lettersId = (letters.body.result as { queue_id: string }).queue_id;
  const { send, taken, queueId } = await world("fails", { batch_size: 2, max_retries: 1 }, "letters");
  await send(["sendBatch", [{ body: { act: "throw" } }, { body: { act: "ack" } }]]);
  await isEmpty(queueId);
  expect((await taken()).map(({ messages }) => messages.length).toSorted((a, b) => a - b)).toEqual([1, 2]);
  const { body } = await server.call("POST", `${account}/queues/${lettersId}/messages/peek`, {});
  expect((body.result as { messages: unknown[] }).messages).toMatchObject([
    { body: btoa('{"act":"throw"}'), attempts: 0 },
  ]);
});

it("a batch that never ends counts as an attempt, and does not affect others", async () => {
  const { send, queueId } = await world("loops", { max_retries: 1, batch_size: 1 });
  const other = await world("bystander");
  await send(["send", { act: "loop" }]);
  await other.send(["send", { n: 1 }]);
  await Promise.all([isEmpty(queueId), isEmpty(other.queueId)]);
  expect((await other.taken()).flatMap(({ messages }) => messages)).toMatchObject([{ body: { n: 1 } }]);
});
